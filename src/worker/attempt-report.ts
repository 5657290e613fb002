import type { Lease, LogLevel } from "../core/job.js";
import type { LineNote, ProgressNote, UsageNote } from "../store/report.js";

/** What one attempt may log. */
const LINES_MOST = 1000;
const BYTES_MOST = 1_048_576;
/** What a line takes beside its text. */
const LINE_OVERHEAD = 200;

export interface Line extends LineNote {
  weight: number;
}

/** What one attempt says, from its first word on. */
export class AttemptReport {
  lines: Line[] = [];
  progress: ProgressNote | undefined;
  unwrittenUse: UsageNote | undefined;
  /** Its end waits until everything is written. */
  onWritten: (() => void) | undefined;
  /** It has lost its job: nothing it says can be written any more. */
  lost = false;
  private full = false;
  private readonly used: UsageNote = { tokens: 0, cost: 0 };
  private seq = 0;
  private bytes = 0;
  /** Lines for which the buffer had no room since the last one that found some. */
  private missing = 0;

  constructor(readonly lease: Lease) {}

  get isWritten(): boolean {
    return (
      this.lines.length === 0 &&
      this.progress === undefined &&
      this.unwrittenUse === undefined &&
      this.missing === 0
    );
  }

  use(tokens: number, cost: number): void {
    this.used.tokens += tokens;
    this.used.cost += cost;
    this.unwrittenUse = { ...this.used };
  }

  /** Takes a line if there is room, here and in the buffer; returns what it added to the buffer. */
  log(level: LogLevel, message: string, fields: string | undefined, room: number): number {
    if (this.full || this.lost) return 0;
    const bytes = Buffer.byteLength(message) + Buffer.byteLength(fields ?? "");
    if (this.seq >= LINES_MOST || this.bytes + bytes > BYTES_MOST) {
      this.full = true;
      return this.add(
        "warn",
        `The rest is dropped: an attempt may log ${LINES_MOST} lines and ${BYTES_MOST} bytes.`,
      );
    }
    if (bytes + LINE_OVERHEAD > room) {
      this.missing++;
      return 0;
    }
    this.bytes += bytes;
    return this.markMissing() + this.add(level, message, fields, bytes);
  }

  /** One line in place of those for which there was no room. */
  markMissing(): number {
    if (this.missing === 0) return 0;
    const message = `${this.missing} lines are missing here: the database did not take them in time.`;
    this.missing = 0;
    return this.add("warn", message);
  }

  drop(): void {
    this.lost = true;
    this.lines = [];
    this.missing = 0;
    this.progress = undefined;
    this.unwrittenUse = undefined;
  }

  private add(level: LogLevel, message: string, fields?: string, bytes = message.length): number {
    const weight = bytes + LINE_OVERHEAD;
    this.lines.push({ seq: ++this.seq, level, message, fields, madeAt: performance.now(), weight });
    return weight;
  }
}
