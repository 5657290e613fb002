import { OracleError } from "../core/errors.js";
import type { LogLine } from "../core/job.js";
import { type Database, statement } from "./database.js";
import { checkJobId } from "./read.js";

interface LogRow {
  attempt_no: number;
  seq: number;
  at: Date;
  level: LogLine["level"];
  message: string;
  fields: LogLine["fields"];
}

const readLogs = statement<LogRow>(
  "read-logs",
  `SELECT attempt_no, seq, at, level, message, fields FROM {schema}.attempt_logs
   WHERE job_id = $1 AND (attempt_no, seq) > ($2, $3)
   ORDER BY attempt_no, seq LIMIT $4`,
);

const readLastLogs = statement<LogRow>(
  "read-last-logs",
  `SELECT attempt_no, seq, at, level, message, fields FROM {schema}.attempt_logs
   WHERE job_id = $1
   ORDER BY attempt_no DESC, seq DESC LIMIT $2`,
);

export interface LogPage {
  /** Only lines behind this one: the last line of the page before. */
  after?: Pick<LogLine, "attemptNo" | "seq"> | undefined;
  /** The end of the log instead of its beginning; `after` has no meaning then. */
  last?: boolean | undefined;
  /** Default 1000, at most 10000. */
  limit?: number | undefined;
}

/** A job's log lines in order, over all its attempts. */
export async function getLogs(db: Database, jobId: string, page: LogPage): Promise<LogLine[]> {
  const { after, last, limit = 1000 } = page;
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000) {
    const message = `limit is ${limit}; it must be a whole number from 1 to 10000.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "limit" });
  }
  const id = checkJobId(jobId);
  const rows = last
    ? (await db.query(readLastLogs, [id, limit])).reverse()
    : await db.query(readLogs, [id, after?.attemptNo ?? 0, after?.seq ?? 0, limit]);
  return rows.map(({ attempt_no: attemptNo, ...line }) => ({ attemptNo, ...line }));
}
