import { OracleError } from "../core/errors.js";
import type { Attempt, Job, Result, StoredError } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import type { AttemptStatus, JobState } from "../core/states.js";
import { type Database, statement } from "./database.js";
import { type JobRow, jobColumns, toJob } from "./job-row.js";

const readJob = statement<JobRow & { input_payload: JsonValue }>(
  "read-job",
  `SELECT ${jobColumns}, j.input_payload FROM {schema}.jobs j WHERE j.job_id = $1`,
);

const readStates = statement<JobRow>(
  "read-jobs",
  `SELECT ${jobColumns} FROM {schema}.jobs j WHERE j.job_id = ANY ($1::uuid[])`,
);

const readAttempts = statement<{
  attempt_id: string;
  attempt_no: number;
  status: AttemptStatus;
  worker_id: string;
  cause: string | null;
  error_json: StoredError | null;
  started_at: Date;
  ended_at: Date | null;
  late_output: JsonValue | null;
}>(
  "read-attempts",
  `SELECT attempt_id, attempt_no, status::text AS status, worker_id, cause, error_json, started_at, ended_at,
     late_output
   FROM {schema}.attempts WHERE job_id = $1 ORDER BY attempt_no`,
);

const readResult = statement<{
  job_id: string;
  attempt_id: string;
  result_payload: JsonValue;
  content_hash: string;
  result_schema_version: number;
  created_at: Date;
}>(
  "read-result",
  `SELECT job_id, attempt_id, result_payload, content_hash, result_schema_version, created_at
   FROM {schema}.results WHERE job_id = $1`,
);

const listJobs = statement<JobRow>(
  "list-jobs",
  `SELECT ${jobColumns} FROM {schema}.jobs j
   WHERE ($1::text IS NULL OR j.state = $1::{schema}.oracle_job_state)
     AND ($2::text IS NULL OR j.job_type = $2)
     AND ($3::text IS NULL OR j.queue_name = $3)
     AND ($4::text IS NULL OR j.tenant_id = $4)
     AND ($5::text IS NULL OR j.spec_hash = $5)
     AND ($6::uuid IS NULL OR j.job_id < $6)
   ORDER BY j.job_id DESC LIMIT $7`,
);

export async function getJob(db: Database, jobId: string): Promise<(Job & { input: JsonValue }) | undefined> {
  const [row] = await db.query(readJob, [checkJobId(jobId)]);
  return row && { ...toJob(row), input: row.input_payload };
}

/** The job, or the error that names it. */
export async function requireJob(db: Database, jobId: string): Promise<Job & { input: JsonValue }> {
  const job = await getJob(db, jobId);
  if (!job) throw new OracleError("JOB_NOT_FOUND", `There is no job ${jobId}.`, { field: "id", jobId });
  return job;
}

export async function getJobs(db: Database, jobIds: string[]): Promise<Job[]> {
  return (await db.query(readStates, [jobIds])).map(toJob);
}

export async function getAttempts(db: Database, jobId: string): Promise<Attempt[]> {
  const rows = await db.query(readAttempts, [checkJobId(jobId)]);
  return rows.map((row) => ({
    attemptId: row.attempt_id,
    attemptNo: row.attempt_no,
    status: row.status,
    workerId: row.worker_id,
    cause: row.cause,
    error: row.error_json,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    lateOutput: row.late_output,
  }));
}

export async function getResult(db: Database, jobId: string): Promise<Result | undefined> {
  const [row] = await db.query(readResult, [checkJobId(jobId)]);
  return (
    row && {
      jobId: row.job_id,
      attemptId: row.attempt_id,
      payload: row.result_payload,
      contentHash: row.content_hash,
      schemaVersion: row.result_schema_version,
      createdAt: row.created_at,
    }
  );
}

export interface JobFilter {
  state?: JobState | undefined;
  type?: string | undefined;
  queue?: string | undefined;
  tenantId?: string | undefined;
  specHash?: string | undefined;
  /** The `next` of the page before. */
  after?: string | undefined;
  limit?: number | undefined;
}

/** Newest first; `next` is the cursor of the following page, null at the end. */
export async function list(db: Database, filter: JobFilter): Promise<{ items: Job[]; next: string | null }> {
  const limit = filter.limit ?? 50;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
    throw new OracleError(
      "INVALID_ARGUMENT",
      `limit is ${limit}; it must be a whole number from 1 to 1000.`,
      {
        field: "limit",
      },
    );
  }
  const rows = await db.query(listJobs, [
    filter.state,
    filter.type,
    filter.queue,
    filter.tenantId,
    filter.specHash,
    filter.after === undefined ? null : checkJobId(filter.after, "after"),
    limit + 1,
  ]);
  const items = rows.slice(0, limit).map(toJob);
  return { items, next: rows.length > limit ? (items.at(-1)?.jobId ?? null) : null };
}

/** A malformed id is a wrong argument, not a job that is missing. */
export function checkJobId(jobId: string, field = "id"): string {
  if (/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(jobId)) return jobId.toLowerCase();
  throw new OracleError("INVALID_ARGUMENT", `${JSON.stringify(jobId)} is not a job id: a UUID is expected.`, {
    field,
  });
}
