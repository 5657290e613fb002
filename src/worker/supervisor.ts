import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../store/database.js";
import { freeDeadWorker } from "../store/free-worker.js";
import { JOURNAL_FD } from "./journal.js";

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
  /** A process whose event loop was blocked past a job's timeout; the jobs beside that one run again for free. */
  onReplace: (details: { workerId: string; pid: number; released: number }) => void;
  onTrouble: (error: unknown) => void;
}

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
  /** It asked to be killed: its event loop is blocked. */
  blocked: boolean;
  /** Jobs it said it started and has not said it ended. */
  running: Set<string>;
  /** Process groups of its handlers that are alive. */
  groups: Set<number>;
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

  /** Kills a process, one that runs a job if there is any, as a crash would. */
  killOne(): { pid: number; workerId: string; jobId: string | null } | undefined {
    const alive = [...this.children].filter(({ process }) => process.pid !== undefined);
    const child = alive.find(({ running }) => running.size > 0) ?? alive[0];
    if (!child) return undefined;
    const [jobId = null] = child.running;
    child.process.kill("SIGKILL");
    return { pid: child.process.pid as number, workerId: child.workerId, jobId };
  }

  /** The ids of the processes that are alive. */
  pids(): number[] {
    return [...this.children].flatMap(({ process }) => process.pid ?? []);
  }

  /** Undefined while every process is up and renews its leases. */
  trouble(): string | undefined {
    const ready = [...this.children].filter(({ wasReady, blocked }) => wasReady && !blocked).length;
    const { processes } = this.options;
    return ready < processes ? `${ready} of ${processes} worker processes are up` : undefined;
  }

  get draining(): boolean {
    return this.stopping;
  }

  /** Asks every process a question that it answers with a message of the same name; the silent ones are left out. */
  async ask(question: string): Promise<unknown[]> {
    const answers = await Promise.all([...this.children].map(({ process }) => answerOf(process, question)));
    return answers.filter((answer) => answer !== undefined);
  }

  private async keepOne(): Promise<number> {
    for (;;) {
      const child = this.spawn();
      const { code, signal } = await ended(child.process);
      this.children.delete(child);
      const clean = code === 0 && signal === null;
      // Before anything is freed: what a handler started must not go on beside the next attempt.
      for (const group of child.groups) killGroup(group);
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
      blocked: false,
      running: new Set(),
      groups: new Set(),
    };
    process.on("message", (message) => {
      if (message !== "ready") return;
      child.wasReady = true;
      options.onReady?.(workerId);
    });
    readJournal(process.stdio[JOURNAL_FD] as Readable, child);
    this.children.add(child);
    if (this.stopping) process.kill("SIGTERM");
    return child;
  }

  /** Tries until the database hears it: until then only the lease's end would free the jobs. */
  private async free(child: Child, how: string): Promise<void> {
    const { db, onCrash, onReplace, onTrouble } = this.options;
    const { workerId, process, blocked } = child;
    const pid = process.pid ?? 0;
    // A handler that outlived the grace was killed by the stop, and one beside a blocked loop by the replacement:
    // not by their own fault.
    const ordered = this.stopping || child.replaced;
    const cause = ordered ? "SHUTDOWN" : blocked ? "PROCESS_REPLACED" : "WORKER_CRASHED";
    const charged = cause === "WORKER_CRASHED" ? [...child.running] : [];
    for (let tries = 0; tries < 60; tries++) {
      try {
        const freed = await freeDeadWorker(db, workerId, charged, cause);
        if (cause === "WORKER_CRASHED") onCrash({ workerId, pid, how, ...freed });
        if (cause === "PROCESS_REPLACED") onReplace({ workerId, pid, released: freed.unstarted });
        return;
      } catch (error) {
        if (tries === 0) onTrouble(error);
        await sleep(1000);
      }
    }
  }

  private async pause(child: Child): Promise<void> {
    if (performance.now() - child.startedAt > HEALTHY_AFTER_MS) this.crashesInARow = 0;
    // A first crash is no reason to wait; those that follow soon may have a cause that stays.
    const crashes = this.crashesInARow++;
    if (crashes === 0) return;
    await sleep(Math.min(RESPAWN_SLOWEST_MS, RESPAWN_FIRST_MS * 2 ** Math.max(0, crashes - 3)));
  }
}

const ANSWER_MS = 1_000;

function answerOf(process: ChildProcess, question: string): Promise<unknown> {
  return new Promise((resolve) => {
    const hear = (message: unknown) => {
      if (typeof message === "object" && message !== null && question in message)
        done((message as Record<string, unknown>)[question]);
    };
    const done = (answer?: unknown) => {
      clearTimeout(timer);
      process.off("message", hear);
      resolve(answer);
    };
    const timer = setTimeout(done, ANSWER_MS);
    process.on("message", hear);
    if (process.connected) process.send(question, () => {});
    else done();
  });
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

/** Waits for the process and for the last byte of its pipes. */
function ended(process: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve) => {
    process.once("close", (code, signal) => resolve({ code, signal }));
    process.once("error", () => resolve({ code: 1, signal: null }));
  });
}

/** `+id` and `-id`: a job starts, ends; `(pid` and `)pid`: a process group; `!`: kill me, my event loop is blocked. */
function readJournal(pipe: Readable, child: Child): void {
  let rest = "";
  pipe.setEncoding("utf8");
  pipe.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const what = line.slice(1);
      if (line.startsWith("+")) child.running.add(what);
      else if (line.startsWith("-")) child.running.delete(what);
      else if (line.startsWith("(")) child.groups.add(Number(what));
      else if (line.startsWith(")")) child.groups.delete(Number(what));
      else {
        child.blocked = true;
        child.process.kill("SIGKILL");
      }
    }
  });
}
