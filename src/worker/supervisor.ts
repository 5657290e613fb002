import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../store/database.js";
import { freeDeadWorker } from "../store/free-worker.js";

export interface SupervisorOptions {
  processes: number;
  /** The module a child runs, and what it is told through the environment; never through its arguments. */
  childModule: string;
  childEnv: (workerId: string) => NodeJS.ProcessEnv;
  mintWorkerId: () => string;
  db: Database;
  onReady?: (workerId: string) => void;
  onCrash: (details: {
    workerId: string;
    pid: number;
    how: string;
    started: number;
    unstarted: number;
  }) => void;
  onTrouble: (error: unknown) => void;
}

/** The file descriptor on which a child tells which jobs it starts and ends. */
export const JOURNAL_FD = 4;

const RESPAWN_FIRST_MS = 100;
const RESPAWN_SLOWEST_MS = 30_000;
const HEALTHY_AFTER_MS = 10_000;

interface Child {
  process: ChildProcess;
  workerId: string;
  startedAt: number;
  wasReady: boolean;
  /** Told to end so that a new one takes its place. */
  replaced: boolean;
  /** Jobs it said it started and has not said it ended. */
  running: Set<string>;
}

/**
 * Keeps worker processes alive. A process that dies is replaced, and what it held is freed at once: jobs it was
 * running are charged an attempt, jobs it had only claimed are not. The pipe tells which is which: what a child
 * wrote before it died is still there to read.
 */
export class Supervisor {
  private readonly children = new Set<Child>();
  private stopping = false;
  private signals = 0;
  private crashesInARow = 0;

  constructor(private readonly options: SupervisorOptions) {}

  /** Resolves with an exit code when every process has ended by itself or after `stop`. */
  async run(): Promise<number> {
    const codes = await Promise.all(Array.from({ length: this.options.processes }, () => this.keepOne()));
    await this.options.db.close();
    return codes.find((code) => code !== 0) ?? 0;
  }

  /** First call: drain. Second: abort handlers. Third: kill. */
  stop(): void {
    this.stopping = true;
    this.signals++;
    for (const { process } of this.children) process.kill(this.signals > 2 ? "SIGKILL" : "SIGTERM");
  }

  /** Lets every process finish its work and starts a new one in its place. */
  reload(): void {
    for (const child of this.children) {
      child.replaced = true;
      child.process.kill("SIGTERM");
    }
  }

  /** The ids of the processes that are alive. */
  pids(): number[] {
    return [...this.children].flatMap(({ process }) => process.pid ?? []);
  }

  private async keepOne(): Promise<number> {
    for (;;) {
      const child = this.spawn();
      const { code, signal } = await ended(child.process);
      this.children.delete(child);
      const clean = code === 0 && signal === null;
      if (!clean || child.running.size > 0) await this.free(child, signal ?? `exit code ${code}`);
      if (this.stopping) return 0;
      if (child.replaced) continue;
      if (clean) return 0;
      // A process that never got to work has nothing to go back to: bad settings, bad handlers, no database.
      if (!child.wasReady && code !== null) return code;
      await this.pause(child);
      if (this.stopping) return 0;
    }
  }

  private spawn(): Child {
    const { options } = this;
    const workerId = options.mintWorkerId();
    const process = spawn(globalThis.process.execPath, [options.childModule], {
      env: options.childEnv(workerId),
      stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"],
      // Its own process group: Ctrl-C reaches the supervisor only, which decides what the children hear.
      detached: true,
    });
    const child: Child = {
      process,
      workerId,
      startedAt: performance.now(),
      wasReady: false,
      replaced: false,
      running: new Set(),
    };
    process.on("message", (message) => {
      if (message !== "ready") return;
      child.wasReady = true;
      options.onReady?.(workerId);
    });
    readJournal(process.stdio[JOURNAL_FD] as Readable, child.running);
    this.children.add(child);
    if (this.stopping) process.kill("SIGTERM");
    return child;
  }

  /** Tries until the database hears it: until then only the lease's end would free the jobs. */
  private async free(child: Child, how: string): Promise<void> {
    const { db, onCrash, onTrouble } = this.options;
    const { workerId, process } = child;
    // A handler that outlived the grace was killed by the stop, not by its own fault.
    const ordered = this.stopping || child.replaced;
    const started = ordered ? [] : [...child.running];
    for (let tries = 0; tries < 60; tries++) {
      try {
        const freed = await freeDeadWorker(db, workerId, started, ordered ? "SHUTDOWN" : "WORKER_CRASHED");
        if (!ordered) onCrash({ workerId, pid: process.pid ?? 0, how, ...freed });
        return;
      } catch (error) {
        if (tries === 0) onTrouble(error);
        await sleep(1000);
      }
    }
  }

  private async pause(child: Child): Promise<void> {
    if (performance.now() - child.startedAt > HEALTHY_AFTER_MS) this.crashesInARow = 0;
    const waitMs = Math.min(RESPAWN_SLOWEST_MS, RESPAWN_FIRST_MS * 2 ** Math.max(0, this.crashesInARow - 3));
    this.crashesInARow++;
    await sleep(waitMs);
  }
}

/** Waits for the process and for the last byte of its pipes. */
function ended(process: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve) => {
    process.once("close", (code, signal) => resolve({ code, signal }));
    process.once("error", () => resolve({ code: 1, signal: null }));
  });
}

/** Lines of `+id` and `-id`. */
function readJournal(pipe: Readable, running: Set<string>): void {
  let rest = "";
  pipe.setEncoding("utf8");
  pipe.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("+")) running.add(line.slice(1));
      else running.delete(line.slice(1));
    }
  });
}
