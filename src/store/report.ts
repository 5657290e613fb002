import type { Lease, LogLevel } from "../core/job.js";
import { type Database, statement } from "./database.js";

/** What one running attempt has to say. */
export interface Report {
  lease: Lease;
  progress: ProgressNote | undefined;
  used?: UsageNote | undefined;
  lines: LineNote[];
}

/** Moments are of this process's monotonic clock; the database makes its own of them. */
export interface ProgressNote {
  /** JSON: fraction, message, details. */
  text: string;
  madeAt: number;
}

/** The attempt's sums so far: written twice they say the same. */
export interface UsageNote {
  tokens: number;
  cost: number;
}

export interface LineNote {
  /** Counts from 1 within the attempt. A line that is written twice is kept once. */
  seq: number;
  level: LogLevel;
  message: string;
  /** JSON. */
  fields: string | undefined;
  madeAt: number;
}

// 008_reports.sql: fences the attempts, keeps their progress and appends their lines.
const reportAttempts = statement<{ attempt_id: string }>(
  "report",
  `SELECT attempt_id FROM {schema}.report_attempts($1::jsonb) AS attempt_id`,
);

/** Writes what many attempts report in one statement; returns the attempts that still hold their jobs. */
export async function report(db: Database, reports: Report[]): Promise<Set<string>> {
  const now = performance.now();
  const age = (madeAt: number) => (now - madeAt) / 1000;
  const rows = await db.query(reportAttempts, [
    JSON.stringify(
      reports.map(({ lease, progress, used, lines }) => ({
        job_id: lease.jobId,
        attempt_id: lease.attemptId,
        progress: progress?.text,
        progress_age: progress && age(progress.madeAt),
        ...used,
        lines: lines.map(({ seq, level, message, fields, madeAt }) => {
          return { seq, level, message, fields, age: age(madeAt) };
        }),
      })),
    ),
  ]);
  return new Set(rows.map((row) => row.attempt_id));
}
