import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { accessSync, chownSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import pg from "pg";
import { until } from "./oracle.js";

/** Debian keeps it where only an administrator's PATH looks. */
const program = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"]
  .map((folder) => join(folder, "pgbouncer"))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

export const hasPgbouncer = program !== undefined;

/** A real PgBouncer in transaction mode, with two connections to the server per login. */
export class Pgbouncer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    private readonly port: number,
  ) {}

  /** `more`: further lines of its settings. */
  static async start(server: URL, logins: URL[], more = ""): Promise<Pgbouncer> {
    const folder = mkdtempSync(join(tmpdir(), "oracle-worker-pgbouncer-"));
    const port = await freePort();
    const users = logins.map((url) => `"${url.username}" "${decodeURIComponent(url.password)}"`);
    const files = {
      "users.txt": users.join("\n"),
      "pgbouncer.ini": `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
stats_users = ${logins.map((url) => url.username).join(", ")}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
${more}`,
    };
    // It refuses to run as root, as Postgres does.
    const account = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : undefined;
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), `${text}\n`, { mode: 0o600 });
      if (account) chownSync(join(folder, name), account.uid, account.gid);
    }
    if (account) chownSync(folder, account.uid, account.gid);
    const child = spawn(program as string, ["-q", join(folder, "pgbouncer.ini")], {
      stdio: "ignore",
      ...account,
    });
    const bouncer = new Pgbouncer(child, folder, port);
    await until("pgbouncer's answer", () => bouncer.answers(logins[0] as URL));
    return bouncer;
  }

  /** The same login and database through the pooler. */
  url(direct: string): string {
    const url = new URL(direct);
    url.hostname = "127.0.0.1";
    url.port = String(this.port);
    return url.href;
  }

  /** Transactions that passed through it, by database. */
  async transactions(login: URL): Promise<Map<string, number>> {
    const console = new URL(this.url(login.href));
    console.pathname = "/pgbouncer";
    const client = new pg.Client(console.href);
    await client.connect();
    const { rows } = await client.query("SHOW STATS").finally(() => client.end());
    return new Map(rows.map(({ database, total_xact_count }) => [database, Number(total_xact_count)]));
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async answers(login: URL): Promise<boolean> {
    const client = new pg.Client(this.url(login.href));
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }
}

function idOf(which: "-u" | "-g"): number {
  return Number(execFileSync("id", [which, "nobody"], { encoding: "utf8" }));
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
