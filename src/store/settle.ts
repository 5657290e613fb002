import type { Lease, Outcome, StoredError } from "../core/job.js";
import { type Database, statement } from "./database.js";

/** An attempt and how it ended. */
export interface Settlement {
  lease: Lease;
  outcome: Outcome;
}

/** Releases that cost no attempt; past these an interruption is charged like a failure. */
export const FREE_INTERRUPTIONS = 20;

// 005_lease_functions.sql: fences the jobs, stores the results and closes the attempts.
const settleSucceeded = statement<{ attempt_id: string }>(
  "settle-succeeded",
  `SELECT attempt_id FROM {schema}.settle_succeeded($1, $2, $3, $4, $5) AS attempt_id`,
);

interface OtherOutcome {
  job_id: string;
  attempt_id: string;
  kind: Outcome["kind"];
  delay_seconds: number;
  cause: string;
  error: StoredError | null;
}

// `decided` locks each job that is still this attempt's and works out what follows; the rest only writes it.
const settleOthers = statement<{ attempt_id: string; state: string }>(
  "settle-others",
  `WITH outcome AS MATERIALIZED (
     SELECT * FROM jsonb_to_recordset($1::jsonb)
       AS o(job_id uuid, attempt_id uuid, kind text, delay_seconds float8, cause text, error jsonb)
   ), fenced AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, o.attempt_id, o.kind, o.delay_seconds, o.cause, o.error,
       j.cancel_requested_at IS NOT NULL AS cancelled,
       j.attempt_count - j.interruptions >= j.max_attempts AS exhausted,
       o.kind = 'snoozed' OR (o.kind = 'released' AND (
         SELECT count(*) FROM {schema}.attempts a
         WHERE a.job_id = j.job_id AND a.status = 'RELEASED' AND a.cause <> 'SNOOZED') < $2) AS free
     FROM outcome o JOIN {schema}.jobs j
       ON j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
     FOR UPDATE OF j
   ), decided AS MATERIALIZED (
     SELECT f.*, (CASE
       WHEN f.kind = 'terminal' THEN 'FAILED_TERMINAL'
       WHEN f.kind = 'cancelled' OR f.cancelled THEN 'CANCELLED'
       WHEN f.free THEN 'PENDING'
       WHEN f.exhausted THEN 'FAILED_TERMINAL'
       WHEN f.kind = 'released' THEN 'PENDING'
       ELSE 'FAILED_RETRYABLE' END)::{schema}.oracle_job_state AS next_state
     FROM fenced f
   ), won AS (
     UPDATE {schema}.jobs j SET
       state = d.next_state, lease_expires_at = NULL, worker_id = NULL, updated_at = clock_timestamp(),
       interruptions = j.interruptions + d.free::integer,
       error_json = coalesce(d.error, j.error_json, CASE WHEN d.next_state = 'FAILED_TERMINAL' THEN
         jsonb_build_object('code', d.cause, 'message', 'handed back too often', 'retryable', false) END),
       run_after = CASE WHEN d.next_state IN ('PENDING', 'FAILED_RETRYABLE')
         THEN clock_timestamp() + make_interval(secs => d.delay_seconds) ELSE j.run_after END,
       completed_at = CASE WHEN d.next_state IN ('FAILED_TERMINAL', 'CANCELLED') THEN clock_timestamp() END,
       active_spec_hash = CASE WHEN d.next_state IN ('PENDING', 'FAILED_RETRYABLE') THEN j.active_spec_hash END
     FROM decided d WHERE j.job_id = d.job_id
     RETURNING j.job_id, j.state
   ), closed AS (
     UPDATE {schema}.attempts a SET
       status = (CASE WHEN d.kind IN ('retryable', 'terminal') THEN 'FAILED' WHEN d.kind = 'cancelled'
         THEN 'CANCELLED' ELSE 'RELEASED' END)::{schema}.oracle_attempt_status,
       ended_at = clock_timestamp(), cause = d.cause, error_json = d.error, error_message = d.error ->> 'message'
     FROM decided d WHERE a.job_id = d.job_id AND a.attempt_no = d.attempt_count
   )
   SELECT d.attempt_id, d.next_state::text AS state FROM decided d`,
);

// An outcome that came after its lease was taken over: evidence beside the attempt, never the result. One that is
// written already, because the reply to the first try was lost, comes back as what it is.
const supersede = statement<{ attempt_id: string; state: string }>(
  "supersede",
  `WITH late AS MATERIALIZED (
     SELECT * FROM jsonb_to_recordset($1::jsonb)
       AS o(job_id uuid, attempt_id uuid, attempt_no integer, output jsonb)
   ), kept AS (
     UPDATE {schema}.attempts a SET status = 'SUPERSEDED', late_output = late.output
     FROM late
     WHERE a.job_id = late.job_id AND a.attempt_no = late.attempt_no AND a.attempt_id = late.attempt_id
       AND a.status = 'LEASE_EXPIRED'
   )
   SELECT late.attempt_id, j.state::text AS state
   FROM late
   JOIN {schema}.attempts a ON a.job_id = late.job_id AND a.attempt_no = late.attempt_no
     AND a.attempt_id = late.attempt_id AND a.status IN ('SUCCEEDED', 'FAILED', 'RELEASED', 'CANCELLED')
   JOIN {schema}.jobs j ON j.job_id = late.job_id AND j.current_attempt_id = late.attempt_id`,
);

/**
 * Writes outcomes, the only place that does. Returns the attempts that won, with the state of their jobs;
 * those missing had lost their lease, and what they brought is kept as evidence.
 */
export async function settle(
  db: Database,
  settlements: Settlement[],
  finishedClaims: string[] = [],
): Promise<Map<string, string>> {
  const won = new Map<string, string>();
  const succeeded: { lease: Lease; resultText: string; contentHash: string }[] = [];
  const others: OtherOutcome[] = [];
  for (const { lease, outcome } of settlements) {
    if (outcome.kind === "succeeded") succeeded.push({ lease, ...outcome });
    else others.push(toOtherOutcome(lease, outcome));
  }
  if (succeeded.length > 0) {
    const rows = await db.query(settleSucceeded, [
      succeeded.map(({ lease }) => lease.jobId),
      succeeded.map(({ lease }) => lease.attemptId),
      succeeded.map(({ resultText }) => resultText),
      succeeded.map(({ contentHash }) => contentHash),
      finishedClaims,
    ]);
    for (const row of rows) won.set(row.attempt_id, "SUCCEEDED");
  }
  if (others.length > 0) {
    const rows = await db.query(settleOthers, [JSON.stringify(others), FREE_INTERRUPTIONS]);
    for (const row of rows) won.set(row.attempt_id, row.state);
  }
  const lost = settlements.filter(({ lease }) => !won.has(lease.attemptId));
  if (lost.length > 0) {
    const written = await db.query(supersede, [JSON.stringify(lost.map(toEvidence))]);
    for (const row of written) won.set(row.attempt_id, row.state);
  }
  return won;
}

function toOtherOutcome(lease: Lease, outcome: Exclude<Outcome, { kind: "succeeded" }>): OtherOutcome {
  const ids = { job_id: lease.jobId, attempt_id: lease.attemptId };
  switch (outcome.kind) {
    case "retryable":
      return {
        ...ids,
        kind: "retryable",
        delay_seconds: outcome.delaySeconds,
        cause: outcome.error.code,
        error: outcome.error,
      };
    case "terminal":
      return { ...ids, kind: "terminal", delay_seconds: 0, cause: outcome.error.code, error: outcome.error };
    case "released":
      return {
        ...ids,
        kind: "released",
        delay_seconds: outcome.delaySeconds,
        cause: outcome.cause,
        error: null,
      };
    case "snoozed":
      return { ...ids, kind: "snoozed", delay_seconds: outcome.delaySeconds, cause: "SNOOZED", error: null };
    case "cancelled":
      return { ...ids, kind: "cancelled", delay_seconds: 0, cause: "CANCELLED", error: null };
  }
}

function toEvidence({ lease, outcome }: Settlement): Record<string, unknown> {
  return {
    job_id: lease.jobId,
    attempt_id: lease.attemptId,
    attempt_no: lease.attemptNo,
    output:
      outcome.kind === "succeeded"
        ? { kind: outcome.kind, result: JSON.parse(outcome.resultText), content_hash: outcome.contentHash }
        : outcome,
  };
}
