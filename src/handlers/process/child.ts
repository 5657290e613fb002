import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { END_GRACE_MS, PIPES_GRACE_MS, PIPES_TURN_MS, TERM_GRACE_MS } from "./caps.js";
import type { Command } from "./command.js";
import { type ProcessGroups, signalGroup, untilGroupGone } from "./group.js";

/** Who listens to a child. */
export interface Ears {
  output(chunk: Buffer): void;
  outputEnd(): void;
  log(chunk: Buffer): void;
}

export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Why it never started. */
  startError: Error | undefined;
  ranSeconds: number;
  /** Its output was read to the end. */
  whole: boolean;
}

/** The descriptor on which our own side of a module answers, so that nothing its handlers print gets between. */
export const MODULE_OUTPUT_FD = 3;

export interface ChildOptions {
  command: Command;
  outputFd: 1 | typeof MODULE_OUTPUT_FD;
  groups: ProcessGroups | undefined;
}

/** One process and everything it starts: a group of its own, which ends as a whole. */
export class Child {
  readonly pid: number | undefined;
  /** Resolves when the process has ended, its pipes are read and nothing of its group is left. */
  readonly ended: Promise<Ending>;
  /** What it did wrong, for which it was killed. */
  failure: Error | undefined;
  private readonly process: ChildProcess;
  private readonly output: Readable | undefined;
  private readonly startedAt = performance.now();
  private alive = true;
  private outputEnded = false;
  private stopping = false;
  private timer: NodeJS.Timeout | undefined;
  private unsent = "";

  constructor({ command, outputFd, groups }: ChildOptions, ears: Ears) {
    this.process = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      stdio: outputFd === 1 ? ["pipe", "pipe", "pipe"] : ["pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.ended = this.watchEnd(groups);
    this.pid = this.process.pid;
    if (this.pid !== undefined) groups?.opened(this.pid);
    // There is none when the system has no descriptors left.
    const [input, ...outputs] = (this.process.stdio ?? []) as [Writable?, ...Readable[]];
    input?.on("error", () => {}); // A child need not read to the end what it is told.
    for (const [place, stream] of outputs.entries()) {
      stream.on("error", () => {});
      stream.on("data", place + 1 === outputFd ? ears.output : ears.log);
    }
    this.output = outputs[outputFd - 1];
    this.output?.once("end", () => {
      this.outputEnded = true;
      if (this.alive) ears.outputEnd();
    });
  }

  get usable(): boolean {
    return this.alive && !this.stopping && this.failure === undefined;
  }

  /** What is written within one turn of the loop goes out in one piece: each costs a call of the system. */
  write(text: string): void {
    if (this.unsent === "") process.nextTick(() => this.send());
    this.unsent += text;
  }

  /** Says a last word, then that there is no more to come. */
  closeInput(text: string | Buffer = ""): void {
    const unsent = this.takeUnsent();
    this.process.stdin?.end(
      typeof text === "string" ? unsent + text : Buffer.concat([Buffer.from(unsent), text]),
    );
  }

  pause(): void {
    this.output?.pause();
  }

  resume(): void {
    this.output?.resume();
  }

  /** For a child that has nothing to do: lets it end by itself first. */
  end(): void {
    this.closeInput();
    if (this.alive) this.timer ??= setTimeout(() => this.stop(), END_GRACE_MS);
  }

  /** TERM, grace, KILL. */
  stop(): void {
    if (!this.alive || this.stopping) return;
    this.stopping = true;
    clearTimeout(this.timer);
    if (this.pid !== undefined) signalGroup(this.pid, "SIGTERM");
    this.timer = setTimeout(() => this.kill(), TERM_GRACE_MS);
  }

  /** Kills it for something it did. */
  fail(error: Error): void {
    this.failure ??= error;
    this.kill();
  }

  private send(): void {
    const text = this.takeUnsent();
    if (text !== "") this.process.stdin?.write(text);
  }

  private takeUnsent(): string {
    const { unsent } = this;
    this.unsent = "";
    return unsent;
  }

  private kill(): void {
    if (this.alive && this.pid !== undefined) signalGroup(this.pid, "SIGKILL");
  }

  private async watchEnd(groups: ProcessGroups | undefined): Promise<Ending> {
    const closed = once(this.process, "close").catch(() => {});
    const { code, signal, startError } = await processEnd(this.process);
    this.alive = false;
    clearTimeout(this.timer);
    const ranSeconds = (performance.now() - this.startedAt) / 1000;
    if (this.pid !== undefined) {
      // Whatever it left behind has lost its purpose.
      signalGroup(this.pid, "SIGKILL");
      this.resume();
      await this.readRest(closed);
      await untilGroupGone(this.pid);
      groups?.closed(this.pid);
    }
    for (const stream of this.process.stdio ?? []) stream?.destroy();
    return { code, signal, startError, ranSeconds, whole: this.outputEnded };
  }

  /** In turns: after a stall of the event loop one long wait would be over before the pipes were looked at. */
  private async readRest(closed: Promise<unknown>): Promise<void> {
    let isClosed = false;
    const noted = closed.then(() => {
      isClosed = true;
    });
    for (let waitedMs = 0; !isClosed && waitedMs < PIPES_GRACE_MS; waitedMs += PIPES_TURN_MS) {
      await Promise.race([noted, sleep(PIPES_TURN_MS, undefined, { ref: false })]);
    }
  }
}

function processEnd(process: ChildProcess): Promise<Pick<Ending, "code" | "signal" | "startError">> {
  return new Promise((resolve) => {
    process.once("exit", (code, signal) => resolve({ code, signal, startError: undefined }));
    process.on("error", (startError) => {
      if (process.pid === undefined) resolve({ code: null, signal: null, startError });
    });
  });
}
