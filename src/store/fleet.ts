import { type Database, statement } from "./database.js";

/** A count that stops where it would take long. */
export interface Counted {
  count: number;
  /** There are at least so many. */
  more: boolean;
}

export interface QueueState {
  queue: string;
  paused: boolean;
  ageingSeconds: number | null;
  ready: Counted;
  running: number;
  oldestReadyAt: Date | null;
}

const MOST_READY = 100_000;

// Queues that have jobs the caller may see; whoever sees every tenant also sees those that only have settings.
const queueStates = statement<{
  queue_name: string;
  paused: boolean;
  ageing_seconds: number | null;
  ready: number;
  running: number;
  oldest_ready_at: Date | null;
}>(
  "queue-states",
  `WITH depths AS MATERIALIZED (SELECT * FROM {schema}.queue_depths($1)),
   running AS MATERIALIZED (
     SELECT j.queue_name, count(*)::integer AS n FROM {schema}.running_jobs() r
     JOIN {schema}.jobs j ON j.job_id = r GROUP BY j.queue_name
   ), names AS (
     SELECT queue_name FROM depths UNION SELECT queue_name FROM running
     UNION SELECT queue_name FROM {schema}.queues WHERE {schema}.sees_every_tenant()
   )
   SELECT n.queue_name, q.paused_at IS NOT NULL AS paused, q.ageing_seconds, coalesce(d.ready, 0) AS ready,
     coalesce(r.n, 0) AS running, d.oldest_ready_at
   FROM names n LEFT JOIN depths d USING (queue_name) LEFT JOIN running r USING (queue_name)
     LEFT JOIN {schema}.queues q USING (queue_name)
   ORDER BY n.queue_name`,
);

export async function readQueues(db: Database): Promise<QueueState[]> {
  const rows = await db.query(queueStates, [MOST_READY]);
  return rows.map((row) => ({
    queue: row.queue_name,
    paused: row.paused,
    ageingSeconds: row.ageing_seconds,
    ready: { count: row.ready, more: row.ready >= MOST_READY },
    running: row.running,
    oldestReadyAt: row.oldest_ready_at,
  }));
}

export interface WorkerState {
  workerId: string;
  host: string;
  pid: number;
  version: string;
  alive: boolean;
  draining: boolean;
  concurrency: number;
  running: number;
  queues: string[];
  jobTypes: string[];
  startedAt: Date;
  seenAt: Date;
}

// A worker that was not seen for two leases is dead.
const workerStates = statement<{
  worker_id: string;
  host: string;
  pid: number;
  version: string;
  alive: boolean;
  draining: boolean;
  concurrency: number;
  running: number;
  queues: string[];
  job_types: string[];
  started_at: Date;
  seen_at: Date;
}>(
  "worker-states",
  `WITH running AS MATERIALIZED (
     SELECT j.worker_id, count(*)::integer AS n FROM {schema}.running_jobs() r
     JOIN {schema}.jobs j ON j.job_id = r GROUP BY j.worker_id
   )
   SELECT w.worker_id, w.host, w.pid, w.version, w.draining, w.concurrency, coalesce(r.n, 0) AS running, w.queues,
     w.job_types, w.started_at, w.seen_at,
     w.seen_at > clock_timestamp() - make_interval(secs => 2 * w.lease_seconds) AS alive
   FROM {schema}.workers w LEFT JOIN running r USING (worker_id)
   ORDER BY w.started_at, w.worker_id`,
);

export async function readWorkers(db: Database): Promise<WorkerState[]> {
  const rows = await db.query(workerStates, []);
  return rows.map((row) => ({
    workerId: row.worker_id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    alive: row.alive,
    draining: row.draining,
    concurrency: row.concurrency,
    running: row.running,
    queues: row.queues,
    jobTypes: row.job_types,
    startedAt: row.started_at,
    seenAt: row.seen_at,
  }));
}
