import { OracleError } from "../core/errors.js";
import { type Database, statement } from "./database.js";

export interface Queue {
  queue: string;
  paused: boolean;
  ageingSeconds: number | null;
  ready: number;
  running: number;
}

const listQueues = statement<{
  queue_name: string;
  paused: boolean;
  ageing_seconds: number | null;
  ready: string;
  running: string;
}>(
  "list-queues",
  `WITH ready AS (SELECT queue_name, count(*) AS n FROM {schema}.ready_jobs GROUP BY queue_name),
   running AS (
     SELECT j.queue_name, count(*) AS n FROM {schema}.jobs j
     WHERE j.job_id = ANY (ARRAY(SELECT unnest(job_ids) FROM {schema}.claims)) AND j.state = 'RUNNING'
     GROUP BY j.queue_name)
   SELECT queue_name, q.paused_at IS NOT NULL AS paused, q.ageing_seconds, coalesce(ready.n, 0) AS ready,
     coalesce(running.n, 0) AS running
   FROM {schema}.queues q FULL JOIN ready USING (queue_name) FULL JOIN running USING (queue_name)
   ORDER BY queue_name`,
);

// 014_reading.sql: whoever acts for one tenant is refused.
const setPaused = statement<never>("pause-queue", `SELECT {schema}.pause_queue($1, $2)`);

const setAgeing = statement<{ queue_name: string }>(
  "age-queue",
  `INSERT INTO {schema}.queues (queue_name, ageing_seconds) VALUES ($1, $2)
   ON CONFLICT (queue_name) DO UPDATE SET ageing_seconds = excluded.ageing_seconds
   RETURNING queue_name`,
);

// Ready rows carry their order, so a new rule of order rewrites them. Rows a claim holds are left to it.
const reorderReady = statement<{ make_ready: number | null }>(
  "reorder-ready",
  `WITH old AS (
     DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM {schema}.ready_jobs WHERE queue_name = $1 FOR UPDATE SKIP LOCKED))
     RETURNING job_id
   )
   SELECT {schema}.make_ready(array_agg(job_id)) FROM old`,
);

export async function queues(db: Database): Promise<Queue[]> {
  const rows = await db.query(listQueues, []);
  return rows.map((row) => ({
    queue: row.queue_name,
    paused: row.paused,
    ageingSeconds: row.ageing_seconds,
    ready: Number(row.ready),
    running: Number(row.running),
  }));
}

export async function pauseQueue(db: Database, queue: string, paused: boolean): Promise<void> {
  await db.query(setPaused, [checkQueueName(queue), paused]);
}

/** One point of priority becomes worth `seconds` of waiting; null goes back to strict priority. */
export async function setQueueAgeing(db: Database, queue: string, seconds: number | null): Promise<void> {
  if (seconds !== null && !(seconds > 0 && seconds <= 86_400)) {
    throw new OracleError("INVALID_ARGUMENT", `ageing is ${seconds}; give seconds from above 0 to 86400.`, {
      field: "ageing",
    });
  }
  await db.transaction(async (client) => {
    await db.query(setAgeing, [checkQueueName(queue), seconds], client);
    await db.query(reorderReady, [queue], client);
  });
}

export function checkQueueName(queue: string): string {
  if (typeof queue === "string" && queue.length >= 1 && queue.length <= 200 && !queue.includes("\0"))
    return queue;
  throw new OracleError("INVALID_ARGUMENT", "A queue's name has 1 to 200 characters.", { field: "queue" });
}
