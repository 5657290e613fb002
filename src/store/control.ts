import { JobPreconditionError, OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import type { JobState } from "../core/states.js";
import { type Database, statement } from "./database.js";
import { type JobRow, jobColumns, toJob } from "./job-row.js";
import { list } from "./list.js";
import { checkJobId, requireJob } from "./read.js";

// A job that waits is cancelled here and now. A running one belongs to its attempt: the wish is recorded, its
// worker is told, and if that worker is gone the sweep ends the job instead of starting it again.
const cancelJob = statement<JobRow>(
  "cancel",
  `WITH changed AS (
     UPDATE {schema}.jobs j SET
       state = CASE WHEN j.state = 'RUNNING' THEN j.state ELSE 'CANCELLED' END,
       completed_at = CASE WHEN j.state <> 'RUNNING' THEN clock_timestamp() END,
       active_spec_hash = CASE WHEN j.state = 'RUNNING' THEN j.active_spec_hash END,
       hold_reason = NULL,
       cancel_requested_at = coalesce(j.cancel_requested_at, clock_timestamp()),
       updated_at = clock_timestamp()
     WHERE j.job_id = ANY ($1::uuid[]) AND j.state IN ('PENDING', 'FAILED_RETRYABLE', 'RUNNING')
     RETURNING j.*
   ), noted AS (
     INSERT INTO {schema}.audit (tenant_id, job_id, action) SELECT tenant_id, job_id, 'cancel' FROM changed
   ), told AS (
     SELECT pg_notify('{schema}_wake', 'cancel') FROM changed WHERE state = 'RUNNING'
   )
   SELECT ${jobColumns}, (SELECT count(*) FROM told) FROM changed j`,
);

// Attempt numbers go on; one more try is granted, or as many as the job had at first.
const retryJobs = statement<JobRow>(
  "retry",
  `WITH changed AS (
     UPDATE {schema}.jobs j SET
       state = 'PENDING', completed_at = NULL, cancel_requested_at = NULL, updated_at = clock_timestamp(),
       run_after = clock_timestamp(),
       hold_reason = CASE WHEN EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id
         AND e.kind = 'unsafe' AND e.state = 'IN_DOUBT') THEN 'effect in doubt' END,
       max_attempts = least(1000, greatest(j.max_attempts, j.attempt_count - j.interruptions + $2))
     WHERE j.job_id = ANY ($1::uuid[]) AND j.state IN ('FAILED_TERMINAL', 'CANCELLED')
       AND (j.deadline IS NULL OR j.deadline > clock_timestamp())
     RETURNING j.*
   ), noted AS (
     INSERT INTO {schema}.audit (tenant_id, job_id, action, details)
     SELECT tenant_id, job_id, 'retry', jsonb_build_object('max_attempts', max_attempts) FROM changed
   )
   SELECT ${jobColumns} FROM changed j`,
);

// For a worker: which of its running jobs somebody wants cancelled.
const cancelRequests = statement<{ attempt_id: string }>(
  "cancel-requests",
  `SELECT j.current_attempt_id AS attempt_id FROM {schema}.jobs j
   WHERE j.job_id = ANY ($1::uuid[]) AND j.cancel_requested_at IS NOT NULL AND j.state = 'RUNNING'`,
);

/** Cancels the job, or asks its running attempt to stop; a second call changes nothing. */
export async function cancel(db: Database, jobId: string): Promise<Job> {
  const [row] = await db.query(cancelJob, [[checkJobId(jobId)]]);
  if (row) return toJob(row);
  const job = await requireJob(db, jobId);
  if (job.state === "CANCELLED") return job;
  throw new JobPreconditionError(jobId, `is already ${job.state}: only an unfinished job can be cancelled`);
}

/** Puts a failed or cancelled job back in its queue, with `attempts` more tries. */
export async function retry(db: Database, jobId: string, attempts = 1): Promise<Job> {
  const [row] = await db.query(retryJobs, [[checkJobId(jobId)], attempts]);
  if (row) return toJob(row);
  const job = await requireJob(db, jobId);
  if (job.deadline && (job.state === "FAILED_TERMINAL" || job.state === "CANCELLED"))
    throw new JobPreconditionError(jobId, "is past its deadline; replay it");
  throw new JobPreconditionError(
    jobId,
    `is ${job.state}: only FAILED_TERMINAL and CANCELLED jobs can be retried; replay makes a new job`,
  );
}

/** Cancels those of the jobs that are unfinished; returns them. */
export async function cancelMany(db: Database, jobIds: string[]): Promise<Job[]> {
  return (await db.query(cancelJob, [jobIds])).map(toJob);
}

/** Retries those of the jobs that can be retried; returns them. */
export async function retryMany(db: Database, jobIds: string[]): Promise<Job[]> {
  return (await db.query(retryJobs, [jobIds, 1])).map(toJob);
}

/** Retries every job in the state, a thousand at a time; returns how many. */
export async function retryAll(db: Database, state: JobState, tenantId?: string): Promise<number> {
  if (state !== "FAILED_TERMINAL" && state !== "CANCELLED") {
    throw new OracleError(
      "INVALID_ARGUMENT",
      `${state} jobs cannot be retried: FAILED_TERMINAL or CANCELLED.`,
      {
        field: "state",
      },
    );
  }
  let total = 0;
  let after: string | undefined;
  do {
    const { items, next } = await list(db, { state, tenantId, after, limit: 1000 });
    total += (
      await retryMany(
        db,
        items.map(({ jobId }) => jobId),
      )
    ).length;
    after = next ?? undefined;
  } while (after !== undefined);
  return total;
}

export async function findCancelRequests(db: Database, jobIds: string[]): Promise<Set<string>> {
  return new Set((await db.query(cancelRequests, [jobIds])).map((row) => row.attempt_id));
}
