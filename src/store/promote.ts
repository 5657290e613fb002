import { type Database, statement } from "./database.js";

// Timers that are due: 'run' makes its job ready, 'deadline' ends one that still waits. A timer whose job has
// moved on is simply dropped. Limits that have room again let the next ones through (015_limits.sql).
// Locks: timers (SKIP LOCKED), then the jobs past their deadline; openings and turns (SKIP LOCKED).
const promoteTimers = statement<{
  fired: number;
  made: number | null;
  passed: number;
  next_in_seconds: number | null;
}>(
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
   ), unannounced AS (
     -- Nobody relays any more; polling has found these jobs.
     DELETE FROM {schema}.outbox WHERE publish_at < (SELECT clock_timestamp() - interval '1 minute')
   )
   SELECT (SELECT count(*)::integer FROM due) AS fired,
     (SELECT {schema}.make_ready(array_agg(job_id)) FROM due WHERE kind = 'run') AS made,
     o.passed, least(o.next_in_seconds,
       (SELECT extract(epoch FROM min(t.due_at) - clock_timestamp())::float8 FROM {schema}.timers t
        WHERE t.due_at > (SELECT clock_timestamp()))) AS next_in_seconds
   FROM {schema}.pass_openings() o`,
);

const BATCH = 1000;

export interface Promoted {
  /** More may be due. */
  more: boolean;
  /** A limit let somebody through, who may have been passed over until now. */
  opened: boolean;
  nextInSeconds: number | null;
}

/** Fires what is due; says what there is to do next, and when. */
export async function promote(db: Database): Promise<Promoted> {
  const [row] = await db.query(promoteTimers, [BATCH]);
  return {
    more: row?.fired === BATCH,
    opened: (row?.passed ?? 0) > 0,
    nextInSeconds: row?.next_in_seconds ?? null,
  };
}
