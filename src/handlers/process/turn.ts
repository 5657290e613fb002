import type { JsonValue } from "../../core/json.js";
import { serveMessage } from "../host.js";
import {
  fromErrorEnvelope,
  type HandlerMessage,
  type ResponseEnvelope,
  toCancel,
  type WorkerMessage,
} from "../protocol.js";
import type { AttemptLog } from "./attempt-log.js";
import { CANCEL_GRACE_MS } from "./caps.js";
import type { Child } from "./child.js";
import type { Task } from "./task.js";

/** Messages served at once, artifacts that are being kept above all, before no more are read. */
const SERVED_AT_ONCE = 8;

interface Settle<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** The result of a turn that its child never began after all. */
export const notBegun = new Error("the child left before it began");

/** One attempt's way to a child that speaks lines, and its time there. */
export class Turn {
  /** Resolves when a child takes it up. */
  readonly begun: Promise<void>;
  readonly result: Promise<JsonValue>;
  answer: ResponseEnvelope | undefined;
  log: AttemptLog | undefined;
  /** Whether all that it wrote to stderr is in its log. */
  logEnded = false;
  /** By performance.now(). */
  begunAt: number | undefined;
  /** What is done where it is now, before a child began it, when it is told to end. */
  onStop: (() => void) | undefined;
  private settleBegun!: Settle<void>;
  private settle!: Settle<JsonValue>;
  private child: Child | undefined;
  private cancelTimer: NodeJS.Timeout | undefined;
  private serving = 0;
  private over = false;

  constructor(readonly task: Task) {
    this.begun = new Promise((resolve, reject) => {
      this.settleBegun = { resolve, reject };
    });
    this.result = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    task.clock.onStop = () => (this.child ? this.cancel() : this.onStop?.());
  }

  /** Why it is to end, if it was told to. */
  get stopError(): Error | undefined {
    return this.task.clock.stopError;
  }

  get cancelMessage(): WorkerMessage {
    return toCancel(this.task.lease, this.stopError);
  }

  /** The child takes it up. */
  begin(child: Child): void {
    this.child = child;
    this.begunAt = performance.now();
    this.settleBegun.resolve();
    if (this.stopError) this.cancel();
  }

  /** No child takes it up. */
  refuse(error: unknown): void {
    this.close();
    this.settleBegun.reject(error);
  }

  serve(message: HandlerMessage): void {
    if (++this.serving === SERVED_AT_ONCE) this.child?.pause();
    serveMessage(this.task, message, (reply) => this.tell(reply))
      .catch((error: unknown) => this.child?.fail(error as Error))
      .finally(() => {
        if (this.serving-- === SERVED_AT_ONCE) this.child?.resume();
      });
  }

  /** With the answer's word. */
  complete(answer: ResponseEnvelope): void {
    this.close();
    if (answer.usage) this.task.context.usage(answer.usage);
    if (answer.ok) this.settle.resolve(answer.result);
    else this.settle.reject(fromErrorEnvelope(answer.error));
  }

  abandon(error: unknown): void {
    this.close();
    this.settle.reject(error);
  }

  /** A late reply would be taken for one to the child's next attempt, which counts its calls anew. */
  private tell(message: WorkerMessage): void {
    if (!this.over && this.answer === undefined) this.child?.write(`${JSON.stringify(message)}\n`);
  }

  private cancel(): void {
    this.tell(this.cancelMessage);
    this.cancelTimer = setTimeout(() => this.child?.stop(), CANCEL_GRACE_MS);
  }

  private close(): void {
    this.over = true;
    clearTimeout(this.cancelTimer);
    this.task.clock.onStop = undefined;
  }
}
