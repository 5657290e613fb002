import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "./cluster.js";
import { programFailure } from "./failures.js";
import { readIfThere } from "./files.js";
import { isAlive } from "./presence.js";
import { run } from "./run.js";

/** The server that holds a data folder right now. */
export interface Server {
  pid: number;
  port: number;
  /** It takes connections: neither starting, recovering nor stopping. */
  ready: boolean;
  /** `postgres --single`, which takes none ever. */
  single: boolean;
}

/** On the command line of every server we start, and so in its postmaster.opts: tells ours from others. */
export const MARK = "cluster_name=oracle-worker";

const STOP_SECONDS = 30;

/** Reads postmaster.pid, whose first lines are pid, folder, start time and port, and whose eighth is the status. */
export async function findServer(data: string): Promise<Server | undefined> {
  const file = join(data, "postmaster.pid");
  const lines = (await readIfThere(file))?.split("\n") ?? [];
  const pid = Number(lines[0]);
  if (!pid || !isAlive(Math.abs(pid))) return undefined;
  if (!(await worksIn(Math.abs(pid), data))) {
    // The server was killed and its pid went to another process: Postgres itself would refuse to start.
    await rm(file, { force: true });
    return undefined;
  }
  return { pid: Math.abs(pid), port: Number(lines[3]), ready: lines[7]?.trim() === "ready", single: pid < 0 };
}

export async function isOurs(data: string): Promise<boolean> {
  return ((await readIfThere(join(data, "postmaster.opts"))) ?? "").includes(MARK);
}

/** Fast shutdown: ends the sessions, writes a checkpoint. */
export async function stopServer(cluster: Cluster): Promise<void> {
  const server = await findServer(cluster.data);
  if (server === undefined || !(await isOurs(cluster.data))) return;
  if (process.platform === "win32") {
    const args = ["stop", "-D", cluster.data, "-m", "fast", "-w", "-t", String(STOP_SECONDS)];
    await run(cluster.binaries.pgCtl, args, { cwd: cluster.place.folder, account: undefined });
  } else {
    // A signal rather than pg_ctl: node_modules may be gone by now, say in the middle of an npm ci.
    try {
      process.kill(server.pid, "SIGINT");
    } catch {
      // It ended by itself just now.
    }
  }
  const deadline = Date.now() + STOP_SECONDS * 1000;
  while (isAlive(server.pid)) {
    if (Date.now() > deadline) {
      throw await programFailure(
        `The embedded Postgres (process ${server.pid}) did not stop in ${STOP_SECONDS} seconds`,
        cluster.place.folder,
        (await readIfThere(cluster.log)) ?? "",
      );
    }
    await sleep(10);
  }
}

/** A server's working directory is its data folder. Where the system does not tell, believe the pid file. */
async function worksIn(pid: number, data: string): Promise<boolean> {
  if (process.platform !== "linux") return true;
  try {
    const [found, wanted] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(data)]);
    return found.dev === wanted.dev && found.ino === wanted.ino;
  } catch {
    // Another account's process, and root without the right to trace: its name is open to all.
    const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "postgres");
    return name.trim() === "postgres";
  }
}
