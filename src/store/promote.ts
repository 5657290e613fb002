import { type Database, statement } from "./database.js";

// Timers that are due: 'run' makes its job ready, 'deadline' ends one that still waits. A timer whose job has
// moved on is simply dropped. Locks: timers (SKIP LOCKED), then the jobs past their deadline.
const promoteTimers = statement<{ fired: number; woken: number; next_in_seconds: number | null }>(
  "promote",
  `WITH due AS MATERIALIZED (
     SELECT t.ctid AS row_id, t.job_id, t.kind FROM {schema}.timers t
     WHERE t.due_at <= (SELECT clock_timestamp())
     ORDER BY t.due_at LIMIT $1 FOR UPDATE SKIP LOCKED
   ), dropped AS (
     DELETE FROM {schema}.timers WHERE ctid = ANY (ARRAY(SELECT row_id FROM due))
   ), ended AS (
     UPDATE {schema}.jobs j SET
       state = 'FAILED_TERMINAL', completed_at = clock_timestamp(), updated_at = clock_timestamp(),
       active_spec_hash = NULL, hold_reason = NULL,
       error_json = '{"code": "DEADLINE_EXCEEDED", "message": "the deadline passed before the job could finish", "retryable": false}'
     WHERE j.job_id = ANY (ARRAY(SELECT job_id FROM due WHERE kind = 'deadline'))
       AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.deadline <= clock_timestamp()
   ), ready AS (
     INSERT INTO {schema}.ready_jobs (queue_name, tenant_id, rank, ready_at, job_id, pin)
     SELECT j.queue_name, j.tenant_id,
       CASE WHEN q.ageing_seconds IS NULL THEN -j.priority ELSE 0 END,
       CASE WHEN q.ageing_seconds IS NULL THEN j.run_after
         ELSE j.run_after - make_interval(secs => j.priority * q.ageing_seconds) END,
       j.job_id, j.job_type || '@' || j.handler_version
     FROM {schema}.jobs j LEFT JOIN {schema}.queues q ON q.queue_name = j.queue_name
     WHERE j.job_id = ANY (ARRAY(SELECT job_id FROM due WHERE kind = 'run'))
       AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
       AND j.run_after <= clock_timestamp()
     ON CONFLICT DO NOTHING
     RETURNING queue_name
   ), unannounced AS (
     -- Nobody relays any more; polling has found these jobs.
     DELETE FROM {schema}.outbox WHERE publish_at < (SELECT clock_timestamp() - interval '1 minute')
   ), woken AS (
     SELECT {schema}.wake(r.queue_name) FROM (SELECT DISTINCT queue_name FROM ready) r
   )
   SELECT (SELECT count(*)::integer FROM due) AS fired, (SELECT count(*)::integer FROM woken) AS woken,
     (SELECT extract(epoch FROM min(t.due_at) - clock_timestamp())::float8 FROM {schema}.timers t
      WHERE t.due_at > (SELECT clock_timestamp())) AS next_in_seconds`,
);

const BATCH = 1000;

/** Fires what is due; says whether more may be due, and in how many seconds the next one will be. */
export async function promote(db: Database): Promise<{ more: boolean; nextInSeconds: number | null }> {
  const [row] = await db.query(promoteTimers, [BATCH]);
  return { more: row?.fired === BATCH, nextInSeconds: row?.next_in_seconds ?? null };
}
