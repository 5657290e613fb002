import { type Database, statement } from "./database.js";
import { FREE_INTERRUPTIONS } from "./settle.js";

// For a worker process that is known to have ended. Jobs it had started are charged: their leases end now, so
// that the next sweep starts them elsewhere. Jobs it had claimed but not started go back free of charge.
// A worker id is minted per process, and the caller has seen that process end.
const freeWorker = statement<{ started: number; unstarted: number; woken: number }>(
  "free-worker",
  `WITH held AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.queue_name, j.job_id = ANY ($2::uuid[]) OR (
         SELECT count(*) FROM {schema}.attempts a
         WHERE a.job_id = j.job_id AND a.status = 'RELEASED' AND a.cause <> 'SNOOZED') >= $3 AS charged
     FROM {schema}.jobs j
     WHERE j.job_id = ANY (ARRAY(
         SELECT unnest(c.job_ids) FROM {schema}.claims c WHERE c.worker_id = $1))
       AND j.worker_id = $1 AND j.state = 'RUNNING'
     FOR UPDATE OF j
   ), noted AS (
     UPDATE {schema}.attempts a SET
       cause = $4,
       status = (CASE WHEN h.charged THEN 'RUNNING' ELSE 'RELEASED' END)::{schema}.oracle_attempt_status,
       ended_at = CASE WHEN NOT h.charged THEN clock_timestamp() END
     FROM held h WHERE a.job_id = h.job_id AND a.attempt_no = h.attempt_count
   ), freed AS (
     UPDATE {schema}.jobs j SET
       state = (CASE WHEN h.charged THEN 'RUNNING' ELSE 'PENDING' END)::{schema}.oracle_job_state,
       lease_expires_at = CASE WHEN h.charged THEN least(j.lease_expires_at, clock_timestamp()) END,
       worker_id = CASE WHEN h.charged THEN j.worker_id END,
       run_after = CASE WHEN h.charged THEN j.run_after ELSE clock_timestamp() END,
       interruptions = j.interruptions + (NOT h.charged)::integer,
       updated_at = clock_timestamp()
     FROM held h WHERE j.job_id = h.job_id
   ), hints AS (
     UPDATE {schema}.claims SET expires_at = clock_timestamp() WHERE worker_id = $1
   ), gone AS (
     DELETE FROM {schema}.workers WHERE worker_id = $1
   ), woken AS (
     SELECT pg_notify('{schema}_wake', 'sweep') WHERE EXISTS (SELECT FROM held)
   )
   SELECT count(*) FILTER (WHERE charged)::integer AS started,
     count(*) FILTER (WHERE NOT charged)::integer AS unstarted,
     (SELECT count(*)::integer FROM woken) AS woken
   FROM held`,
);

export async function freeDeadWorker(
  db: Database,
  workerId: string,
  startedJobIds: string[],
  cause: "WORKER_CRASHED" | "SHUTDOWN",
): Promise<{ started: number; unstarted: number }> {
  const [row] = await db.query(freeWorker, [workerId, startedJobIds, FREE_INTERRUPTIONS, cause]);
  return { started: row?.started ?? 0, unstarted: row?.unstarted ?? 0 };
}
