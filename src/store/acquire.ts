import { JobLockConflict, JobPreconditionError } from "../core/errors.js";
import { newId } from "../core/ids.js";
import type { Lease, LockedJob } from "../core/job.js";
import type { Claim, HandlerVersions } from "./claim.js";
import { arrayStatement, type Database, type SqlClient, statement } from "./database.js";
import { type LeaseRow, leaseColumns, toLease } from "./lease-row.js";

// 005_lease_functions.sql: compare-and-swap by ids, under the rule of eligibility that every claim follows.
const acquireJobs = arrayStatement<LeaseRow>(
  "acquire",
  `SELECT ${leaseColumns} FROM {schema}.acquire_jobs($1, $2, $3, $4, $5)`,
);

// Says in words why a job cannot start now; null when it could.
const whyNot = statement<{ job_id: string; why: string | null }>(
  "acquire-why-not",
  `SELECT j.job_id, CASE
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
     WHEN j.state = 'RUNNING' AND EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id
         AND e.kind = 'unsafe' AND e.state IN ('DISPATCHED', 'IN_DOUBT'))
       THEN 'has an effect in doubt'
     WHEN j.state <> 'RUNNING' AND j.run_after > clock_timestamp() THEN 'may not run before ' || j.run_after
     WHEN j.state <> 'RUNNING' AND t.max_running <= (
         SELECT count(*) FROM {schema}.slots s WHERE s.tenant_id = j.tenant_id)
       THEN 'waits: its tenant runs as many as it may'
     WHEN j.state <> 'RUNNING' AND j.concurrency_limit <= (
         SELECT count(*) FROM {schema}.slots s
         WHERE s.tenant_id = j.tenant_id AND s.concurrency_key = j.concurrency_key)
       THEN 'waits: its concurrency key is full'
     WHEN j.state <> 'RUNNING' AND t.start_limit IS NOT NULL AND EXISTS (
         SELECT FROM {schema}.turns u WHERE u.tenant_id = j.tenant_id AND u.tokens < 1)
       THEN 'waits for its tenant''s rate'
   END AS why
   FROM {schema}.jobs j LEFT JOIN {schema}.tenants t ON t.tenant_id = j.tenant_id
   WHERE j.job_id = ANY ($1::uuid[])`,
);

const lockJob = statement<{ job_id: string }>(
  "start-lock",
  `SELECT job_id FROM {schema}.jobs WHERE job_id = $1 FOR UPDATE NOWAIT`,
);

export type Acquired = { won: true; lease: Lease } | { won: false; why: string };

interface Request {
  workerId: string;
  leaseSeconds: number;
  /** Left out, the caller answers for the handler's version itself. */
  versions?: HandlerVersions;
}

export interface AcquiredMany extends Claim {
  /** The jobs whose lease was not won, each with the reason. */
  lost: Map<string, string>;
}

/** Tries to win the leases of jobs known by their ids, in one statement. */
export async function acquireMany(
  db: Database,
  jobIds: string[],
  { workerId, leaseSeconds, versions }: Request,
  client?: SqlClient,
): Promise<AcquiredMany> {
  const claimId = newId();
  const values = [jobIds, workerId, leaseSeconds, claimId, versions ?? null];
  const leases = (await db.query(acquireJobs, values, client)).map(toLease);
  const won = new Set(leases.map(({ jobId }) => jobId));
  const missed = jobIds.filter((jobId) => !won.has(jobId));
  const lost = new Map(missed.map((jobId) => [jobId, "does not exist"]));
  if (missed.length > 0) {
    for (const { job_id, why } of await db.query(whyNot, [missed, versions ?? null], client)) {
      lost.set(job_id, why ?? "was taken by somebody else at the same moment");
    }
  }
  return { claimId, leases, lost };
}

/** Tries to win the lease of one job; a loss says why. */
export async function acquire(
  db: Database,
  { jobId, ...request }: Request & { jobId: string },
  client?: SqlClient,
): Promise<Acquired> {
  const { leases, lost } = await acquireMany(db, [jobId], request, client);
  const [lease] = leases;
  return lease ? { won: true, lease } : { won: false, why: lost.get(jobId) ?? "does not exist" };
}

/**
 * Starts one job by its id without waiting for anybody: a locked row is a JobLockConflict, a job that may not
 * start a JobPreconditionError. `precondition` looks at the job while its row is locked, before the claim.
 */
export async function startJob(
  db: Database,
  request: Request & { jobId: string },
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
