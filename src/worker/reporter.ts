import { setTimeout as sleep } from "node:timers/promises";
import type { LogLevel } from "../core/job.js";
import type { Database } from "../store/database.js";
import { isTransient } from "../store/database-errors.js";
import { type Report, report } from "../store/report.js";
import type { AttemptReport, Line } from "./attempt-report.js";

const FLUSH_MS = 250;
const RETRY_MS = 500;
/** What all attempts of a process may have unwritten; reached only while the database does not keep up. */
const BUFFER_BYTES = 16_777_216;
/** What one statement carries, give or take one attempt. */
const BATCH_BYTES = 4_194_304;
type Batch = { attempt: AttemptReport; report: Report; lines: Line[] }[];

/**
 * Gathers what the running attempts report and writes it in one statement, four times a second at most; no handler
 * waits for it. What an attempt said last is written before its outcome, because the outcome closes the fence.
 */
export class Reporter {
  private readonly unwritten = new Map<string, AttemptReport>();
  private buffered = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | undefined;
  /** Somebody waits, or a batch was full: go on writing without a pause. */
  private hurried = false;
  private troubled = false;
  private closing = false;

  constructor(
    private readonly db: Database,
    private readonly onTrouble: (error: unknown) => void,
    private readonly onRecovered: () => void,
  ) {}

  /** `message` and `fields`, which is JSON, are fit for the database already. */
  log(attempt: AttemptReport, level: LogLevel, message: string, fields?: string): void {
    this.buffered += attempt.log(level, message, fields, BUFFER_BYTES - this.buffered);
    this.remember(attempt);
  }

  /** The latest counts. `text` is JSON. */
  progress(attempt: AttemptReport, text: string): void {
    if (attempt.lost) return;
    attempt.progress = { text, madeAt: performance.now() };
    this.remember(attempt);
  }

  /** Adds to what the attempt has used. */
  usage(attempt: AttemptReport, tokens: number, cost: number): void {
    if (attempt.lost) return;
    attempt.use(tokens, cost);
    this.remember(attempt);
  }

  /** To be called before an attempt's outcome is handed on. Undefined: it has nothing unwritten, as most have. */
  finish(attemptId: string): Promise<void> | undefined {
    const attempt = this.unwritten.get(attemptId);
    return (
      attempt &&
      new Promise((resolve) => {
        attempt.onWritten = resolve;
        this.hurried = true;
        void this.flush();
      })
    );
  }

  /** Writes what there is, with one try. */
  async close(): Promise<void> {
    this.closing = true;
    await this.writing;
    await this.flush();
    clearTimeout(this.timer);
  }

  private remember(attempt: AttemptReport): void {
    if (attempt.isWritten) return;
    this.unwritten.set(attempt.lease.attemptId, attempt);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  private flush(): Promise<void> {
    this.writing ??= this.writeAll();
    return this.writing;
  }

  private async writeAll(): Promise<void> {
    clearTimeout(this.timer);
    // Let everything that ends in this turn of the loop share the statement.
    await null;
    do {
      this.hurried = false;
      await this.write(this.take());
    } while (this.hurried && !this.closing);
    this.writing = undefined;
    this.timer =
      this.unwritten.size > 0 && !this.closing ? setTimeout(() => void this.flush(), FLUSH_MS) : undefined;
  }

  private take(): Batch {
    const batch: Batch = [];
    let weight = 0;
    for (const attempt of this.unwritten.values()) {
      this.hurried ||= weight > BATCH_BYTES;
      if (weight > BATCH_BYTES) break;
      this.buffered += attempt.markMissing();
      const { lease, progress, lines } = attempt;
      batch.push({ attempt, report: { lease, progress, used: attempt.unwrittenUse, lines }, lines });
      attempt.lines = [];
      attempt.progress = undefined;
      attempt.unwrittenUse = undefined;
      weight += weigh(lines);
    }
    return batch;
  }

  private async write(batch: Batch): Promise<void> {
    if (batch.length === 0) return;
    const reports = batch.map((one) => one.report);
    for (;;) {
      try {
        const holding = await report(this.db, reports);
        this.setTroubled(undefined);
        return this.settle(batch, holding);
      } catch (error) {
        this.setTroubled(error);
        if (this.closing) return;
        if (!isTransient(error)) break;
        await sleep(RETRY_MS);
      }
    }
    // What cannot be stored of one attempt must not take the others' with it.
    if (batch.length === 1) this.settle(batch, new Set());
    else for (const one of batch) await this.write([one]);
  }

  private settle(batch: Batch, holding: Set<string>): void {
    for (const { attempt, lines } of batch) {
      const { attemptId } = attempt.lease;
      this.buffered -= weigh(lines);
      if (!holding.has(attemptId)) {
        this.buffered -= weigh(attempt.lines);
        attempt.drop();
      }
      if (!attempt.isWritten) continue;
      this.unwritten.delete(attemptId);
      attempt.onWritten?.();
    }
  }

  private setTroubled(error: unknown): void {
    const troubled = error !== undefined;
    if (troubled !== this.troubled) troubled ? this.onTrouble(error) : this.onRecovered();
    this.troubled = troubled;
  }
}

function weigh(lines: readonly Line[]): number {
  return lines.reduce((sum, { weight }) => sum + weight, 0);
}
