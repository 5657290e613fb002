import { newId } from "../core/ids.js";
import type { Claim, HandlerVersions } from "./claim.js";
import { arrayStatement, type Database } from "./database.js";
import { type LeaseRow, leaseColumns, notRunning, toLease } from "./lease-row.js";

// 005_lease_functions.sql: closes attempts whose leases ran out, and ends or restarts their jobs.
const reclaimJobs = arrayStatement<LeaseRow>(
  "reclaim",
  `SELECT ${leaseColumns} FROM {schema}.reclaim_jobs($1, $2, $3, $4, $5, $6, $7)`,
);

export interface Reclaimed extends Claim {
  /** Jobs that did not start again: attempts used up, deadline passed, cancelled, or waiting for another worker. */
  ended: { jobId: string; tenantId: string; type: string; state: string }[];
}

/** Takes over up to `limit` jobs whose leases ran out, and ends those that may not run again. */
export async function reclaim(
  db: Database,
  request: {
    workerId: string;
    queues: string[];
    /** Only this tenant's; left out, everybody's. */
    tenant?: string | undefined;
    leaseSeconds: number;
    limit: number;
    versions: HandlerVersions;
  },
): Promise<Reclaimed> {
  const claimId = newId();
  const rows = await db.query(reclaimJobs, [
    request.queues,
    request.tenant ?? null,
    request.workerId,
    request.limit,
    request.leaseSeconds,
    claimId,
    request.versions,
  ]);
  return {
    claimId,
    leases: rows.filter((row) => !notRunning(row)).map(toLease),
    ended: rows.flatMap((row) => {
      const { jobId, tenantId, type } = toLease(row);
      const state = notRunning(row);
      return state ? [{ jobId, tenantId, type, state }] : [];
    }),
  };
}
