import type { Announcement } from "../core/dispatch.js";
import { type Database, statement } from "./database.js";

interface OutboxRow {
  job_id: string;
  queue_name: string;
  priority: number;
  delay_ms: number;
  attempt_count: number;
}

// Rows whose time has come, oldest first. What is running or finished by now needs no announcement.
const takeOutbox = statement<OutboxRow & { waiting: boolean }>(
  "take-outbox",
  `WITH due AS MATERIALIZED (
     SELECT o.ctid AS row_id, o.job_id FROM {schema}.outbox o
     WHERE o.publish_at <= (SELECT clock_timestamp())
     ORDER BY o.publish_at LIMIT $1 FOR UPDATE SKIP LOCKED
   ), taken AS (
     DELETE FROM {schema}.outbox WHERE ctid = ANY (ARRAY(SELECT row_id FROM due))
   )
   SELECT j.job_id, j.queue_name, j.priority, j.attempt_count,
     greatest(0, extract(epoch FROM j.run_after - clock_timestamp()) * 1000)::float8 AS delay_ms,
     j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL AS waiting
   FROM {schema}.jobs j WHERE j.job_id = ANY (ARRAY(SELECT job_id FROM due))`,
);

const announceQueues = statement<never>(
  "announce-queues",
  `INSERT INTO {schema}.queues AS q (queue_name, announced) SELECT unnest($1::text[]), true
   ON CONFLICT (queue_name) DO UPDATE SET announced = true WHERE NOT q.announced`,
);

const putBack = statement<never>(
  "put-back",
  `INSERT INTO {schema}.outbox (publish_at, job_id)
   SELECT clock_timestamp() + interval '200 milliseconds', unnest($1::uuid[]) ON CONFLICT DO NOTHING`,
);

const BATCH = 500;

/**
 * Hands due rows to `publish` and forgets them once it has succeeded; when it fails they stay.
 * Says whether there may be more.
 */
export async function relayOutbox(
  db: Database,
  publish: (jobs: Announcement[]) => Promise<void>,
): Promise<boolean> {
  return db.transaction(async (client) => {
    const rows = await db.query(takeOutbox, [BATCH], client);
    const waiting = rows.filter((row) => row.waiting);
    if (waiting.length > 0) await publish(waiting.map(toAnnouncement));
    return rows.length === BATCH;
  });
}

/** From now on jobs of these queues get outbox rows. */
export async function markAnnounced(db: Database, queues: string[]): Promise<void> {
  await db.query(announceQueues, [queues]);
}

/** Messages that came to a worker without room for their jobs: somebody else shall hear of them. */
export async function putBackAnnouncements(db: Database, jobIds: string[]): Promise<void> {
  await db.query(putBack, [jobIds]);
}

function toAnnouncement(row: OutboxRow): Announcement {
  return {
    jobId: row.job_id,
    queue: row.queue_name,
    priority: row.priority,
    delayMs: row.delay_ms,
    attemptCount: row.attempt_count,
  };
}
