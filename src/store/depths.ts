import { type Database, statement } from "./database.js";

export interface QueueDepth {
  queue: string;
  ready: number;
  oldestSeconds: number;
}

// Reads the whole of ready_jobs by its index: ask now and then, not per job.
const readDepths = statement<{ queue_name: string; ready: number; oldest_seconds: number }>(
  "queue-depths",
  `SELECT r.queue_name, count(*)::float8 AS ready,
     greatest(0, extract(epoch FROM clock_timestamp() - min(r.ready_at)))::float8 AS oldest_seconds
   FROM {schema}.ready_jobs r GROUP BY r.queue_name`,
);

/** How many jobs could start in each queue, and how long the first of them has waited. */
export async function queueDepths(db: Database): Promise<QueueDepth[]> {
  const rows = await db.query(readDepths, []);
  return rows.map((row) => ({
    queue: row.queue_name,
    ready: row.ready,
    oldestSeconds: row.oldest_seconds,
  }));
}
