import { type Claim, claim } from "../../dist/store/claim.js";
import type { Database } from "../../dist/store/database.js";
import { discover } from "../../dist/store/discover.js";
import type { TestDatabase } from "./oracle.js";

/** The database as a worker uses it: restricted role, pinned plans. */
export function workerDatabase(db: TestDatabase): Database {
  return db.oracle.db.with({ pinPlans: true, maxConnections: 4 });
}

/** Claims what is ready in one queue, without a worker. */
export async function claimFrom(
  db: Database,
  queue: string,
  options: {
    limit?: number;
    leaseSeconds?: number;
    workerId?: string;
    versions?: Record<string, string>;
  } = {},
): Promise<Claim> {
  const { limit = 10, leaseSeconds = 60, workerId = "test", versions = {} } = options;
  const { slices } = await discover(db, { queues: [queue], limit: 100, versions });
  if (slices.length === 0) return { claimId: "", leases: [] };
  return claim(db, {
    workerId,
    leaseSeconds,
    versions,
    quotas: slices.map((slice) => ({ slice, quota: limit })),
  });
}

/** Lets a lease run out at once, as if its time had passed. */
export async function expireLease(db: TestDatabase, jobId: string): Promise<void> {
  await db.sql(
    "UPDATE oracle.jobs SET lease_expires_at = least(lease_expires_at, clock_timestamp() - interval '1 ms') WHERE job_id = $1",
    [jobId],
  );
  await db.sql("UPDATE oracle.claims SET expires_at = clock_timestamp() WHERE $1 = ANY (job_ids)", [jobId]);
}
