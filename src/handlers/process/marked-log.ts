import { AttemptLog } from "./attempt-log.js";

/** A mark: this byte, an attempt's id, a line's end. */
const MARK = 0x1e;
const ID_LENGTH = 36;
const MARK_LENGTH = ID_LENGTH + 2;
const NEWLINE = 0x0a;
const nothing = Buffer.alloc(0);

/**
 * Tells whose words on stderr are whose. A child that takes requests ahead begins the next attempt before we know that
 * the last one has ended; so it ends what each attempt wrote with a mark of that attempt's id, which no input can hold.
 */
export class MarkedLog<Turn> {
  private log: AttemptLog | undefined;
  /** What may be the beginning of a mark. */
  private held: Buffer = nothing;

  constructor(
    /** The attempt with the child that has this id. */
    private readonly find: (attemptId: string) => Turn | undefined,
    private readonly onMark: (turn: Turn, log: AttemptLog | undefined) => void,
  ) {}

  push(chunk: Buffer): void {
    const bytes = this.held.length > 0 ? Buffer.concat([this.held, chunk]) : chunk;
    this.held = nothing;
    let start = 0;
    for (let at = bytes.indexOf(MARK); at !== -1; at = bytes.indexOf(MARK, at + 1)) {
      const end = at + MARK_LENGTH;
      if (end > bytes.length) {
        this.held = Buffer.from(bytes.subarray(at));
        this.append(bytes.subarray(start, at));
        return;
      }
      const turn =
        bytes[end - 1] === NEWLINE ? this.find(bytes.toString("latin1", at + 1, end - 1)) : undefined;
      if (!turn) continue;
      if (at > start) this.append(bytes.subarray(start, at));
      this.onMark(turn, this.take());
      start = end;
      at = end - 1;
    }
    if (start < bytes.length) this.append(bytes.subarray(start));
  }

  /** What was written since the last mark. */
  take(): AttemptLog | undefined {
    this.append(this.held);
    this.held = nothing;
    const { log } = this;
    this.log = undefined;
    return log;
  }

  private append(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.log ??= new AttemptLog();
    this.log.append(bytes);
  }
}
