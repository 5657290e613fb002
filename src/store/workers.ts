import { type Database, statement } from "./database.js";

export interface WorkerRecord {
  workerId: string;
  host: string;
  pid: number;
  version: string;
  concurrency: number;
  leaseSeconds: number;
  queues: string[];
  /** Undefined: it serves all tenants. */
  tenant: string | undefined;
  jobTypes: string[];
}

const upsertWorker = statement<never>(
  "register-worker",
  `INSERT INTO {schema}.workers
     (worker_id, host, pid, version, concurrency, lease_seconds, queues, tenant_id, job_types, draining)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
   ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp(), draining = excluded.draining`,
);

const deleteWorker = statement<never>("remove-worker", `DELETE FROM {schema}.workers WHERE worker_id = $1`);

// Types that some live worker serves for the tenant; a worker not seen for two leases is dead.
const servedTypes = statement<{ job_type: string }>(
  "served-types",
  `SELECT DISTINCT unnest(w.job_types) AS job_type FROM {schema}.workers w
   WHERE w.seen_at > clock_timestamp() - make_interval(secs => 2 * w.lease_seconds) AND NOT w.draining
     AND (w.tenant_id IS NULL OR w.tenant_id = $1)`,
);

const forgetDead = statement<never>(
  "forget-dead-workers",
  `DELETE FROM {schema}.workers WHERE seen_at < clock_timestamp() - interval '1 day'`,
);

/** Says that the worker is alive and what it serves. */
export async function registerWorker(db: Database, worker: WorkerRecord, draining: boolean): Promise<void> {
  await db.query(upsertWorker, [
    worker.workerId,
    worker.host,
    worker.pid,
    worker.version,
    worker.concurrency,
    worker.leaseSeconds,
    worker.queues,
    worker.tenant,
    worker.jobTypes,
    draining,
  ]);
}

export async function removeWorker(db: Database, workerId: string): Promise<void> {
  await db.query(deleteWorker, [workerId]);
  await db.query(forgetDead, []);
}

export async function findServedTypes(db: Database, tenantId: string): Promise<Set<string>> {
  return new Set((await db.query(servedTypes, [tenantId])).map((row) => row.job_type));
}
