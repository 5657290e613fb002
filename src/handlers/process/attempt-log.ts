import { redactText } from "../../core/redact.js";
import { secretsIn } from "../../core/secrets.js";
import type { JobContext } from "../define.js";
import { BoundedBytes } from "./bytes.js";
import { STDERR_BYTES, STDERR_TAIL_BYTES } from "./caps.js";

/** What a child writes to stderr during one attempt. */
export class AttemptLog {
  private readonly kept = new BoundedBytes(STDERR_BYTES);
  private dropped = 0;
  /** The end of what was dropped. */
  private tail = Buffer.alloc(0);

  append(chunk: Buffer): void {
    const before = this.kept.length;
    if (this.kept.append(chunk)) return;
    const rest = chunk.subarray(this.kept.length - before);
    this.dropped += rest.length;
    this.tail = Buffer.concat([this.tail, rest.subarray(-STDERR_TAIL_BYTES)]).subarray(-STDERR_TAIL_BYTES);
  }

  /** As much as is kept of it. */
  get text(): string {
    return this.kept.peek().toString("utf8");
  }

  /** The last lines, for an error's text. */
  lastLines(): string {
    const end = this.dropped > 0 ? this.tail : this.kept.peek().subarray(-STDERR_TAIL_BYTES);
    const text = end.toString("utf8").trimEnd();
    // A first line that was cut in its middle says less than nothing.
    const whole = this.kept.length + this.dropped > end.length ? text.slice(text.indexOf("\n") + 1) : text;
    return whole.trimStart();
  }

  /** Keeps it with the attempt, without secrets. That it could not be kept must not hide how the attempt ended. */
  async keep(context: JobContext<unknown>): Promise<void> {
    if (this.kept.length === 0) return;
    const mark = this.dropped > 0 ? `\n[cut: ${this.dropped} more bytes]\n` : "";
    const text = redactText(this.text, secretsIn(context.input));
    try {
      await context.artifact("stderr.log", Buffer.from(text + mark), {
        mediaType: "text/plain; charset=utf-8",
      });
    } catch {
      // As said above.
    }
  }
}
