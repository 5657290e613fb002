import { JobLockConflict, JobPreconditionError } from "../core/errors.js";
import { newId } from "../core/ids.js";
import type { Lease, LockedJob } from "../core/job.js";
import type { HandlerVersions } from "./claim.js";
import { type Database, type SqlClient, statement } from "./database.js";
import { type LeaseRow, toLease } from "./lease-row.js";

// 005_lease_functions.sql: compare-and-swap by id, under the rule of eligibility that every claim follows.
const acquireJob = statement<LeaseRow>("acquire", `SELECT * FROM {schema}.acquire_job($1, $2, $3, $4, $5)`);

// Says in words why a job cannot start now; null when it could.
const whyNot = statement<{ why: string | null }>(
  "acquire-why-not",
  `SELECT CASE
     WHEN j.state IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED') THEN 'is already ' || j.state
     WHEN j.hold_reason IS NOT NULL THEN 'is held: ' || j.hold_reason
     WHEN j.deadline <= clock_timestamp() THEN 'is past its deadline'
     WHEN EXISTS (SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL)
       THEN 'waits in a paused queue: ' || j.queue_name
     WHEN j.handler_version <> coalesce($2::jsonb ->> j.job_type, '') AND $2 IS NOT NULL
       THEN 'is pinned to handler version ' || j.handler_version
     WHEN j.state = 'RUNNING' AND j.lease_expires_at > clock_timestamp() THEN 'is leased by worker ' || j.worker_id
     WHEN j.state = 'RUNNING' AND j.cancel_requested_at IS NOT NULL THEN 'is being cancelled'
     WHEN j.state = 'RUNNING' AND j.attempt_count - j.interruptions >= j.max_attempts
       THEN 'has used up its attempts'
     WHEN j.state <> 'RUNNING' AND j.run_after > clock_timestamp() THEN 'may not run before ' || j.run_after
     WHEN j.state <> 'RUNNING' AND t.max_running <= (
       SELECT count(*) FROM {schema}.slots s WHERE s.tenant_id = j.tenant_id) THEN 'waits: its tenant runs as many as it may'
     WHEN j.state <> 'RUNNING' AND j.concurrency_limit <= (
       SELECT count(*) FROM {schema}.slots s
       WHERE s.tenant_id = j.tenant_id AND s.concurrency_key = j.concurrency_key) THEN 'waits: its concurrency key is full'
     WHEN j.state <> 'RUNNING' AND t.start_limit IS NOT NULL AND EXISTS (
       SELECT FROM {schema}.turns u WHERE u.tenant_id = j.tenant_id AND u.tokens < 1) THEN 'waits for its tenant''s rate'
   END AS why
   FROM {schema}.jobs j LEFT JOIN {schema}.tenants t ON t.tenant_id = j.tenant_id WHERE j.job_id = $1`,
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
  /** Left out, the caller answers for the handler's version itself. */
  versions?: HandlerVersions;
}

/** Tries to win the lease of one job; a loss says why. */
export async function acquire(db: Database, request: AcquireRequest, client?: SqlClient): Promise<Acquired> {
  const { jobId, workerId, leaseSeconds, versions } = request;
  const [row] = await db.query(
    acquireJob,
    [jobId, workerId, leaseSeconds, newId(), versions ?? null],
    client,
  );
  if (row) return { won: true, lease: toLease(row) };
  const [reason] = await db.query(whyNot, [jobId, versions ?? null], client);
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
