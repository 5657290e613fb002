import type { JobDefinition } from "../define.js";
import type { ResponseEnvelope } from "../protocol.js";
import type { AttemptLog } from "./attempt-log.js";
import { Lines } from "./bytes.js";
import { LINGER_MS, STDOUT_BYTES } from "./caps.js";
import type { Child, Ending } from "./child.js";
import { describe, endedWithoutAnswer } from "./ending.js";
import { breach, checkAttempt, readLine, readMessage, tooMuchOutput } from "./envelope.js";
import type { Launcher } from "./launcher.js";
import { MarkedLog } from "./marked-log.js";
import { Pace } from "./pace.js";
import { Parts } from "./parts.js";
import { notBegun, type Turn } from "./turn.js";

export interface LineChildEvents {
  /** It may take another request. */
  onRoom(child: LineChild): void;
  /** These it has not begun and will not begin. */
  onReturned(turns: Turn[]): void;
  onGone(child: LineChild): void;
}

/** A child that speaks lines and serves one attempt at a time, in the order of their requests. */
export class LineChild {
  /** When its last turn ended, by performance.now(). */
  idleSince = 0;
  private readonly child: Child;
  private readonly lines = new Lines(STDOUT_BYTES, (line) => this.hearLine(line));
  private readonly parts = new Parts();
  private readonly pace = new Pace();
  private readonly log = new MarkedLog<Turn>(
    (attemptId) => (this.pace.ahead > 0 ? this.find(attemptId) : undefined),
    (turn, log) => this.endLog(turn, log),
  );
  /** The first one has begun, the others lie ahead in the pipe. */
  private turns: Turn[] = [];
  /** Those that have answered and whose words on stderr are still on their way. */
  private answered: Turn[] = [];
  private begun = 0;
  private leaving = false;
  private lingering: NodeJS.Timeout | undefined;
  private unwatch: (() => void) | undefined;

  constructor(
    private readonly definition: JobDefinition,
    private readonly launcher: Launcher,
    /** Whether it serves more than one attempt. */
    private readonly warm: boolean,
    private readonly events: LineChildEvents,
  ) {
    this.child = launcher.start(definition, {
      output: (chunk) => this.hear(chunk),
      outputEnd: () => {
        const failure = breach("it closed stdout and did not end");
        this.lingering = setTimeout(() => this.child.fail(failure), LINGER_MS);
      },
      log: (chunk) => this.hasTurn && this.log.push(chunk),
    });
    void this.child.ended.then((ending) => {
      clearTimeout(this.lingering);
      this.unwatch?.();
      this.leaving = true;
      this.judge(ending);
      events.onGone(this);
    });
  }

  get free(): boolean {
    return this.warm && !this.leaving && this.child.usable && !this.hasTurn;
  }

  /** How many requests lie with it. */
  get load(): number {
    return this.turns.length;
  }

  /** Whether it takes this one while it serves another. */
  takesAhead({ task }: Turn): boolean {
    return (
      this.pace.hasRoom(this.turns.length, task.request.length) &&
      this.warm &&
      !this.leaving &&
      this.child.usable
    );
  }

  take(turn: Turn): void {
    this.turns.push(turn);
    this.child.write(`${turn.task.request}\n`);
    // It reads what has come before it begins anything: what is told to end while it lies there is not begun.
    turn.onStop = () => this.child.write(`${JSON.stringify(turn.cancelMessage)}\n`);
    if (this.turns.length === 1) this.beginFirst();
  }

  end(): void {
    this.leaving = true;
    this.child.end();
  }

  private get hasTurn(): boolean {
    return this.turns.length + this.answered.length > 0;
  }

  private find(attemptId: string): Turn | undefined {
    for (const turn of this.answered) if (turn.task.lease.attemptId === attemptId) return turn;
    for (const turn of this.turns) if (turn.task.lease.attemptId === attemptId) return turn;
    return undefined;
  }

  private beginFirst(): void {
    const [turn] = this.turns;
    // One that was told to stop begins nothing more.
    if (!turn || turn.begunAt !== undefined || !this.child.usable) return;
    this.begun++;
    this.unwatch ??= this.launcher.watchMemory(this.child, this.definition);
    turn.begin(this.child);
  }

  private hear(chunk: Buffer): void {
    if (this.child.failure) return;
    if (!this.lines.push(chunk)) {
      this.child.fail(tooMuchOutput("keep large data as an artifact, and send a long message in parts"));
    } else if (this.lines.pending && (!this.turns[0] || this.turns[0].answer)) this.child.fail(twoAnswers());
  }

  private hearLine(line: Buffer): void {
    if (this.child.failure) return;
    try {
      const read = readLine(line);
      const [turn] = this.turns;
      if (this.parts.pending && !("part" in read)) throw breach("a message without its last part");
      if ("leaving" in read) this.leave();
      else if ("ahead" in read) this.pace.ahead = this.warm ? read.ahead : 0;
      else if ("returned" in read) this.takeBack(read.returned);
      else if (!turn || turn.answer) throw twoAnswers();
      else if ("part" in read) this.hearPart(turn, read);
      else if ("message" in read) turn.serve(read.message);
      else this.hearAnswer(turn, read.response);
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
    this.pace.note(performance.now() - (turn.begunAt ?? 0));
    if (this.pace.ahead > 0) {
      this.turns.shift();
      this.beginFirst();
      this.answered.push(turn);
      if (turn.logEnded) this.finishAnswered();
      // A turn of the loop later what it wrote before its answer has been read from stderr too, and so has a second
      // answer that came with the first.
    } else setImmediate(() => this.finish(turn, answer));
  }

  private endLog(turn: Turn, log: AttemptLog | undefined): void {
    turn.log = log;
    turn.logEnded = true;
    this.finishAnswered();
  }

  private finishAnswered(): void {
    // One that is ending takes its turns with it: an attempt is over when nothing of it is left.
    if (!this.child.usable) return;
    while (this.answered[0]?.logEnded) {
      const turn = this.answered.shift() as Turn;
      turn.complete(turn.answer as ResponseEnvelope);
    }
    this.rest();
  }

  private finish(turn: Turn, answer: ResponseEnvelope): void {
    if (!this.child.usable) return;
    if (this.warm) {
      this.turns.shift();
      turn.log = this.log.take();
      turn.complete(answer);
      this.rest();
      // One that is not kept must still end well: its exit code is part of its answer.
    } else this.end();
  }

  private rest(): void {
    if (!this.hasTurn) {
      this.idleSince = performance.now();
      this.unwatch?.();
      this.unwatch = undefined;
    }
    this.events.onRoom(this);
  }

  /** It ends by itself. What it has not begun goes to another child, but a new one has no reason to refuse. */
  private leave(): void {
    this.end();
    const [turn] = this.turns;
    if (turn?.begunAt !== undefined && !turn.answer && this.begun === 1)
      throw breach("it left without an answer to its first request");
    this.giveBack(this.turns.filter(({ answer }) => !answer));
  }

  private takeBack(attemptIds: string[]): void {
    const returned = this.turns.filter(
      ({ task, answer }) => !answer && attemptIds.includes(task.lease.attemptId),
    );
    if (returned.length < attemptIds.length) throw breach("it gave back an attempt that it does not have");
    if (returned.some(({ stopError }) => !stopError)) this.pace.slowDown();
    this.giveBack(returned);
    this.beginFirst();
    this.rest();
  }

  private giveBack(returned: Turn[]): void {
    this.turns = this.turns.filter((turn) => !returned.includes(turn));
    // The first of them was taken for begun when the one before it had answered.
    for (const turn of returned) if (turn.begunAt !== undefined) turn.abandon(notBegun);
    this.events.onReturned(returned.filter(({ begunAt }) => begunAt === undefined));
  }

  /** What became of the attempts that were with it when it ended. */
  private judge(ending: Ending): void {
    const { answered, definition } = this;
    const [turn] = this.turns;
    for (const each of answered) each.complete(each.answer as ResponseEnvelope);
    this.answered = [];
    if (turn?.begunAt !== undefined) {
      this.turns.shift();
      turn.log ??= this.log.take();
      this.judgeTurn(turn, ending, definition);
    }
    this.giveBack(this.turns);
  }

  private judgeTurn(turn: Turn, ending: Ending, definition: JobDefinition): void {
    const { answer, log, stopError } = turn;
    if (this.child.failure) turn.abandon(this.child.failure);
    else if (answer && (this.warm || ending.code === 0 || !answer.ok)) turn.complete(answer);
    else if (stopError) turn.abandon(stopError);
    else if (answer) turn.abandon(breach(`it answered with success, but ${describe(ending)}`));
    else turn.abandon(endedWithoutAnswer(definition, ending, log));
  }
}

function twoAnswers(): Error {
  return breach("it wrote more after its answer");
}
