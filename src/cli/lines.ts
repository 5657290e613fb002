import { PayloadRejected } from "../core/errors.js";
import { decodeUtf8 } from "./input.js";

export interface Line {
  /** Counted from 1, as editors do. */
  number: number;
  text: string;
  /** Of the file, up to the end of this line. */
  bytesRead: number;
}

const NEWLINE = 10;

/** The lines of a stream, one at a time: the reader's pace is the stream's. Too long a line is refused. */
export async function* readLines(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  let number = 1;
  let bytesRead = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;

  const add = (part: Buffer) => {
    begun.push(part);
    begunBytes += part.length;
    if (begunBytes <= maxBytes) return;
    throw new PayloadRejected(
      "PAYLOAD_TOO_LARGE",
      `line ${number}`,
      `Line ${number} is longer than ${maxBytes} bytes.`,
    );
  };
  const finish = (): Line => {
    bytesRead += begunBytes;
    const line = { number, text: decodeUtf8(Buffer.concat(begun), `Line ${number}`), bytesRead };
    number++;
    begun = [];
    begunBytes = 0;
    return line;
  };

  for await (const chunk of source) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      bytesRead += 1;
      from = end + 1;
      yield finish();
    }
    add(chunk.subarray(from));
  }
  if (begunBytes > 0) yield finish();
}
