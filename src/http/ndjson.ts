import { OracleError } from "../core/errors.js";
import { decodeUtf8 } from "./read-body.js";

/** One line of a stream, or why it cannot be read. */
export type Line = { number: number; text: string } | { number: number; error: OracleError };

const NEWLINE = 10;

/**
 * The lines of a stream, as many at a time as arrived together; the reader's pace is the stream's. A line that is too
 * long or no text is told as such, and the next one is read.
 */
export async function* readLines(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line[]> {
  let number = 0;
  let begun: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    bytes += part.length;
    // What is too long is counted on, not kept.
    if (bytes <= maxBytes) begun.push(part);
    else begun = [];
  };
  const finish = (): Line => {
    const line = toLine(++number, bytes > maxBytes ? undefined : Buffer.concat(begun), maxBytes);
    begun = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of source) {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      from = end + 1;
      lines.push(finish());
    }
    add(chunk.subarray(from));
    if (lines.length > 0) yield lines;
  }
  if (bytes > 0) yield [finish()];
}

function toLine(number: number, bytes: Buffer | undefined, maxBytes: number): Line {
  if (!bytes) {
    const message = `The line is longer than ${maxBytes} bytes.`;
    return { number, error: new OracleError("PAYLOAD_TOO_LARGE", message, { field: "$" }) };
  }
  try {
    return { number, text: decodeUtf8(bytes) };
  } catch (error) {
    return { number, error: error as OracleError };
  }
}
