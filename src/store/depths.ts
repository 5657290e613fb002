import { type Database, statement } from "./database.js";

export interface QueueDepth {
  queue: string;
  ready: number;
  oldestSeconds: number;
}

export interface HeldCount {
  reason: string;
  jobs: number;
}

// Reads the whole of ready_jobs by its index: ask now and then, not per job.
const readDepths = statement<{ queue_name: string; ready: number; oldest_seconds: number }>(
  "queue-depths",
  `SELECT r.queue_name, count(*)::float8 AS ready,
     greatest(0, extract(epoch FROM clock_timestamp() - min(r.ready_at)))::float8 AS oldest_seconds
   FROM {schema}.ready_jobs r GROUP BY r.queue_name`,
);

const readHeld = statement<HeldCount>(
  "held-counts",
  `SELECT j.hold_reason AS reason, count(*)::float8 AS jobs
   FROM {schema}.jobs j WHERE j.hold_reason IS NOT NULL GROUP BY 1`,
);

/** How many jobs could start in each queue, how long the first of them has waited, and how many wait for a person. */
export async function countWork(db: Database): Promise<{ depths: QueueDepth[]; held: HeldCount[] }> {
  const rows = await db.query(readDepths, []);
  const depths = rows.map((row) => ({
    queue: row.queue_name,
    ready: row.ready,
    oldestSeconds: row.oldest_seconds,
  }));
  return { depths, held: await db.query(readHeld, []) };
}
