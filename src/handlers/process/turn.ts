import type { JsonValue } from "../../core/json.js";
import { serveMessage } from "../host.js";
import {
  fromErrorEnvelope,
  type HandlerMessage,
  type ResponseEnvelope,
  toCancel,
  type WorkerMessage,
} from "../protocol.js";
import { AttemptLog } from "./attempt-log.js";
import { CANCEL_GRACE_MS } from "./caps.js";
import type { Child } from "./child.js";
import { onAbort, type Task } from "./task.js";

/** Messages served at once, artifacts that are being kept above all, before no more are read. */
const SERVED_AT_ONCE = 8;

/** One attempt's time with a child that speaks lines. */
export class Turn {
  readonly result: Promise<JsonValue>;
  answer: ResponseEnvelope | undefined;
  log: AttemptLog | undefined;
  private readonly deafen: () => void;
  private settle!: { resolve(value: JsonValue): void; reject(error: unknown): void };
  private cancelTimer: NodeJS.Timeout | undefined;
  private serving = 0;
  private over = false;

  constructor(
    readonly task: Task,
    private readonly child: Child,
    private readonly unwatch: () => void,
  ) {
    this.result = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    child.write(`${task.request}\n`);
    this.deafen = onAbort(task.context.signal, () => this.cancel());
  }

  hearLog(chunk: Buffer): void {
    this.log ??= new AttemptLog();
    this.log.append(chunk);
  }

  serve(message: HandlerMessage): void {
    if (++this.serving === SERVED_AT_ONCE) this.child.pause();
    serveMessage(this.task, message, (reply) => this.tell(reply))
      .catch((error: unknown) => this.child.fail(error as Error))
      .finally(() => {
        if (this.serving-- === SERVED_AT_ONCE) this.child.resume();
      });
  }

  /** With the answer's word. */
  complete(answer: ResponseEnvelope): void {
    if (answer.usage) this.task.context.usage(answer.usage);
    if (answer.ok) this.close().resolve(answer.result);
    else this.close().reject(fromErrorEnvelope(answer.error));
  }

  abandon(error: unknown): void {
    this.close().reject(error);
  }

  /** A late reply would be taken for one to the child's next attempt, which counts its calls anew. */
  private tell(message: WorkerMessage): void {
    if (!this.over && this.answer === undefined) this.child.write(`${JSON.stringify(message)}\n`);
  }

  private cancel(): void {
    const { lease, context } = this.task;
    this.tell(toCancel(lease, context.signal));
    this.cancelTimer = setTimeout(() => this.child.stop(), CANCEL_GRACE_MS);
  }

  private close(): Turn["settle"] {
    this.over = true;
    clearTimeout(this.cancelTimer);
    this.deafen();
    this.unwatch();
    return this.settle;
  }
}
