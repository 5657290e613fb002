import { JobLockConflict, JobPreconditionError } from "../core/errors.js";
import { newId } from "../core/ids.js";
import type { Lease, LockedJob } from "../core/job.js";
import { type Database, type SqlClient, statement } from "./database.js";
import { type LeaseRow, toLease } from "./lease-row.js";

// 005_lease_functions.sql: compare-and-swap by id, under the rule of eligibility that every claim follows.
const acquireJob = statement<LeaseRow>("acquire", `SELECT * FROM {schema}.acquire_job($1, $2, $3, $4)`);

// Says in words why a job cannot start now; null when it could.
const whyNot = statement<{ why: string | null }>(
  "acquire-why-not",
  `SELECT CASE
     WHEN j.state IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED') THEN 'is already ' || j.state
     WHEN j.hold_reason IS NOT NULL THEN 'is held: ' || j.hold_reason
     WHEN j.deadline <= clock_timestamp() THEN 'is past its deadline'
     WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL)
       THEN 'waits in a paused queue: ' || j.queue_name
     WHEN j.state = 'RUNNING' AND j.lease_expires_at > clock_timestamp() THEN 'is leased by worker ' || j.worker_id
     WHEN j.state = 'RUNNING' AND j.cancel_requested_at IS NOT NULL THEN 'is being cancelled'
     WHEN j.state = 'RUNNING' AND j.attempt_count - j.interruptions >= j.max_attempts
       THEN 'has used up its attempts'
     WHEN j.state <> 'RUNNING' AND j.run_after > clock_timestamp() THEN 'may not run before ' || j.run_after
   END AS why
   FROM {schema}.jobs j WHERE j.job_id = $1`,
);

const lockJob = statement<{ job_id: string }>(
  "start-lock",
  `SELECT job_id FROM {schema}.jobs WHERE job_id = $1 FOR UPDATE NOWAIT`,
);

export type Acquired = { won: true; lease: Lease } | { won: false; why: string };

interface AcquireRequest {
  jobId: string;
  workerId: string;
  leaseSeconds: number;
}

/** Tries to win the lease of one job; a loss says why. */
export async function acquire(db: Database, request: AcquireRequest, client?: SqlClient): Promise<Acquired> {
  const { jobId, workerId, leaseSeconds } = request;
  const [row] = await db.query(acquireJob, [jobId, workerId, leaseSeconds, newId()], client);
  if (row) return { won: true, lease: toLease(row) };
  const [reason] = await db.query(whyNot, [jobId], client);
  if (!reason) return { won: false, why: "does not exist" };
  return { won: false, why: reason.why ?? "was taken by somebody else at the same moment" };
}

/**
 * Starts one job by its id without waiting for anybody: a locked row is a JobLockConflict, a job that may not
 * start a JobPreconditionError. `precondition` looks at the job while its row is locked, before the claim.
 */
export async function startJob(
  db: Database,
  request: AcquireRequest,
  precondition?: (client: SqlClient) => Promise<void>,
): Promise<LockedJob> {
  return db.transaction(async (client) => {
    await db.query(lockJob, [request.jobId], client).catch((error: unknown) => {
      throw isLockConflict(error) ? new JobLockConflict(request.jobId, error) : error;
    });
    await precondition?.(client);
    const acquired = await acquire(db, request, client);
    if (!acquired.won) throw new JobPreconditionError(request.jobId, acquired.why);
    return Object.freeze(acquired.lease);
  });
}

/** SQLSTATE 55P03, or its words where a pooler or another driver swallowed the code. */
export function isLockConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    (error as { code?: string }).code === "55P03" ||
    /could not obtain lock|database is locked/i.test(error.message)
  );
}
