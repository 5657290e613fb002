import { isFinished } from "../core/states.js";
import type { Database } from "../store/database.js";
import { getLogs } from "../store/logs.js";
import { getAttempts, getResult, requireJob } from "../store/read.js";
import type { JobVersion } from "../store/watch.js";
import { attemptJson, jobWithInputJson, logLineJson, resultJson } from "./to-json.js";
import type { AttemptJson, JobWithInputJson, LogLineJson, ResultJson } from "./types.js";

/** So many of the latest log lines are kept for all followers of a job; who is further behind asks for them. */
const KEEP_LINES = 500;

/** What is known of a job at one moment, for everybody who follows it. */
export interface Snapshot {
  version: string;
  job: JobWithInputJson;
  attempts: AttemptJson[];
  attemptNo: number;
  /** The latest lines of the current attempt, and the number of the very last one. */
  lines: LogLineJson[];
  lastSeq: number;
  finished: boolean;
  result: ResultJson | undefined;
}

/** Reads what has changed since the snapshot before. */
export async function takeSnapshot(
  db: Database,
  { jobId, version, lastSeq }: JobVersion,
  before: Snapshot | undefined,
): Promise<Snapshot> {
  const job = await requireJob(db, jobId);
  const attempts = await getAttempts(db, jobId);
  const attemptNo = job.attemptCount;
  const known = before?.attemptNo === attemptNo ? before.lines : [];
  const seq = Math.max(known.at(-1)?.seq ?? 0, lastSeq - KEEP_LINES);
  const fresh =
    lastSeq > seq ? await getLogs(db, jobId, { after: { attemptNo, seq }, limit: KEEP_LINES }) : [];
  const lines = [...known, ...fresh.filter((line) => line.attemptNo === attemptNo).map(logLineJson)];
  const result = job.state === "SUCCEEDED" ? await getResult(db, jobId) : undefined;
  return {
    version,
    job: jobWithInputJson(job, attempts),
    attempts: attempts.map(attemptJson),
    attemptNo,
    lines: lines.slice(-KEEP_LINES),
    lastSeq: lines.at(-1)?.seq ?? lastSeq,
    finished: isFinished(job.state),
    result: result && resultJson(result),
  };
}
