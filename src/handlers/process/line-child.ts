import type { JobDefinition } from "../define.js";
import type { ResponseEnvelope } from "../protocol.js";
import { Lines } from "./bytes.js";
import { LINGER_MS, STDOUT_BYTES } from "./caps.js";
import type { Child, Ending } from "./child.js";
import { describe, endedWithoutAnswer } from "./ending.js";
import { breach, checkAttempt, readLine, readMessage, tooMuchOutput } from "./envelope.js";
import type { Launcher } from "./launcher.js";
import { Parts } from "./parts.js";
import type { Task } from "./task.js";
import { Turn } from "./turn.js";

/** The reason of a turn that the child never began. */
export const notBegun = new Error("the child left before it began");

/** A child that speaks lines and serves one attempt at a time. */
export class LineChild {
  /** When its last turn ended, by performance.now(). */
  idleSince = 0;
  private readonly child: Child;
  private readonly lines = new Lines(STDOUT_BYTES, (line) => this.hearLine(line));
  private readonly parts = new Parts();
  private turn: Turn | undefined;
  private turns = 0;
  private leaving = false;
  private lingering: NodeJS.Timeout | undefined;

  constructor(
    private readonly definition: JobDefinition,
    private readonly launcher: Launcher,
    /** Whether it serves more than one attempt. */
    private readonly warm: boolean,
    onGone: (child: LineChild) => void,
  ) {
    this.child = launcher.start(definition, {
      output: (chunk) => this.hear(chunk),
      outputEnd: () => {
        const failure = breach("it closed stdout and did not end");
        this.lingering = setTimeout(() => this.child.fail(failure), LINGER_MS);
      },
      log: (chunk) => this.turn?.hearLog(chunk),
    });
    void this.child.ended.then((ending) => {
      clearTimeout(this.lingering);
      this.leaving = true;
      onGone(this);
      this.judge(ending);
    });
  }

  get free(): boolean {
    return this.warm && !this.leaving && this.turn === undefined && this.child.usable;
  }

  begin(task: Task): Turn {
    this.turns++;
    this.turn = new Turn(task, this.child, this.launcher.watchMemory(this.child, this.definition));
    return this.turn;
  }

  end(): void {
    this.leaving = true;
    this.child.end();
  }

  private hear(chunk: Buffer): void {
    if (this.child.failure) return;
    if (!this.lines.push(chunk)) {
      this.child.fail(tooMuchOutput("keep large data as an artifact, and send a long message in parts"));
    } else if (this.lines.pending && (!this.turn || this.turn.answer)) this.child.fail(twoAnswers());
  }

  private hearLine(line: Buffer): void {
    if (this.child.failure) return;
    try {
      const read = readLine(line);
      if (this.parts.pending && !("part" in read)) throw breach("a message without its last part");
      if ("leaving" in read) this.leave();
      else if (!this.turn || this.turn.answer) throw twoAnswers();
      else if ("part" in read) this.hearPart(this.turn, read);
      else if ("message" in read) this.turn.serve(read.message);
      else this.hearAnswer(this.turn, read.response);
    } catch (error) {
      this.child.fail(error as Error);
    }
  }

  private hearPart(turn: Turn, { part, last }: { part: string; last: boolean }): void {
    const message = this.parts.add(part, last);
    if (message) turn.serve(readMessage(message));
  }

  private hearAnswer(turn: Turn, answer: ResponseEnvelope): void {
    checkAttempt(answer, turn.task.lease.attemptId);
    turn.answer = answer;
    // A turn of the loop later what it wrote before its answer has been read from stderr too, and so has a second
    // answer that came with the first.
    setImmediate(() => this.finish(turn, answer));
  }

  private finish(turn: Turn, answer: ResponseEnvelope): void {
    // One that is ending takes its turn with it: the attempt is over when nothing of it is left.
    if (!this.child.usable) return;
    if (this.warm) {
      this.turn = undefined;
      this.idleSince = performance.now();
      turn.complete(answer);
      // One that is not kept must still end well: its exit code is part of its answer.
    } else this.end();
  }

  /** It ends by itself. A request it has not begun goes to another child, but a new one has no reason to refuse. */
  private leave(): void {
    const { turn } = this;
    this.end();
    if (!turn || turn.answer) return;
    if (this.turns === 1) throw breach("it left without an answer to its first request");
    this.turn = undefined;
    turn.abandon(notBegun);
  }

  /** What became of the attempt that was with it when it ended. */
  private judge(ending: Ending): void {
    const { turn, definition } = this;
    this.turn = undefined;
    if (!turn) return;
    const { answer, log, task } = turn;
    const { signal } = task.context;
    if (this.child.failure) turn.abandon(this.child.failure);
    else if (answer && (this.warm || ending.code === 0 || !answer.ok)) turn.complete(answer);
    else if (signal.aborted) turn.abandon(signal.reason);
    else if (answer) turn.abandon(breach(`it answered with success, but ${describe(ending)}`));
    else turn.abandon(endedWithoutAnswer(definition, ending, log));
  }
}

function twoAnswers(): Error {
  return breach("it wrote more after its answer");
}
