import { OracleError } from "../core/errors.js";
import type { Attempt, Job, Progress, Result, StoredError } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import type { AttemptStatus } from "../core/states.js";
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
  handler_version: string | null;
  cause: string | null;
  error_json: StoredError | null;
  started_at: Date;
  ended_at: Date | null;
  late_output: JsonValue | null;
  progress: (Omit<Progress, "at"> & { at: string }) | null;
  tokens: string | null;
  cost: number | null;
}>(
  "read-attempts",
  `SELECT attempt_id, attempt_no, status::text AS status, worker_id, handler_version, cause, error_json, started_at, ended_at,
     late_output, progress, tokens, cost
   FROM {schema}.attempts WHERE job_id = $1 ORDER BY attempt_no`,
);

const readResult = statement<{
  job_id: string;
  attempt_id: string;
  result_payload: JsonValue;
  content_hash: string;
  provenance_hash: string;
  model_metadata: JsonValue | null;
  result_schema_version: number;
  created_at: Date;
}>(
  "read-result",
  `SELECT job_id, attempt_id, result_payload, content_hash, provenance_hash, model_metadata,
     result_schema_version, created_at
   FROM {schema}.results WHERE job_id = $1`,
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
    handlerVersion: row.handler_version,
    cause: row.cause,
    error: row.error_json,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    lateOutput: row.late_output,
    progress: row.progress && { ...row.progress, at: new Date(row.progress.at) },
    tokens: row.tokens === null ? null : Number(row.tokens),
    cost: row.cost,
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
      provenanceHash: row.provenance_hash,
      modelMetadata: row.model_metadata,
      schemaVersion: row.result_schema_version,
      createdAt: row.created_at,
    }
  );
}

/** A malformed id is a wrong argument, not a job that is missing. */
export function checkJobId(jobId: string, field = "id"): string {
  if (/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(jobId)) return jobId.toLowerCase();
  throw new OracleError("INVALID_ARGUMENT", `${JSON.stringify(jobId)} is not an id: a UUID is expected.`, {
    field,
  });
}
