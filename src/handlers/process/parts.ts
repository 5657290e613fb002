import { OracleError } from "../../core/errors.js";
import { BoundedBytes } from "./bytes.js";
import { MESSAGE_BYTES, STDOUT_BYTES } from "./caps.js";

/** Characters of a part: its line stays below the cap, whatever they are. */
const PART_LENGTH = 200_000;

/** The lines of a message: one, or as many parts as a long one takes. */
export function toLines(message: string): string[] {
  if (Buffer.byteLength(message) < STDOUT_BYTES) return [message];
  if (Buffer.byteLength(message) > MESSAGE_BYTES) throw tooLong();
  const lines: string[] = [];
  for (let start = 0, end = 0; end < message.length; start = end) {
    end = start + PART_LENGTH;
    // Half a surrogate pair is no text.
    if (/[\ud800-\udbff]/.test(message.charAt(end - 1))) end++;
    const part = message.slice(start, end);
    lines.push(JSON.stringify(end < message.length ? { part } : { part, last: true }));
  }
  return lines;
}

/** Puts the parts of one message together. */
export class Parts {
  private readonly bytes = new BoundedBytes(MESSAGE_BYTES);

  get pending(): boolean {
    return this.bytes.length > 0;
  }

  /** Returns the message with its last part. */
  add(part: string, last: boolean): Buffer | undefined {
    if (!this.bytes.append(Buffer.from(part))) throw tooLong();
    return last ? this.bytes.take() : undefined;
  }
}

function tooLong(): OracleError {
  const message = `A message of the handler's process is longer than ${MESSAGE_BYTES} bytes: keep such data elsewhere and send a reference to it.`;
  return new OracleError("OUTPUT_REJECTED", message);
}
