import { newId } from "../core/ids.js";
import type { Lease } from "../core/job.js";
import { arrayStatement, type Database } from "./database.js";
import { type LeaseRow, leaseColumns, notRunning, toLease } from "./lease-row.js";

/** One tenant's ready jobs in one queue, and where their head was when last seen. */
export interface Slice {
  queue: string;
  tenantId: string;
  headRank: number;
  /** As Postgres printed it: a Date would lose the microseconds. */
  headReadyAt: string;
  headJobId: string;
  /** The queue's order counts waiting against priority, so a job alone does not tell its place. */
  ageing: boolean;
  /** The tenant's share of the queue, against the others' weights. */
  weight: number;
}

/** The job types that a worker serves, each with its handler's version. */
export type HandlerVersions = Readonly<Record<string, string>>;

export interface ClaimRequest {
  workerId: string;
  leaseSeconds: number;
  versions: HandlerVersions;
  /** How many jobs to take from each slice. */
  quotas: { slice: Slice; quota: number }[];
}

// 005_lease_functions.sql: takes ready rows from their heads, starts their jobs and opens their attempts.
const claimJobs = arrayStatement<LeaseRow>(
  "claim",
  `SELECT ${leaseColumns} FROM {schema}.claim_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
);

/** A batch of leases and the id of its sweeper's hint, which the last settle of the batch removes. */
export interface Claim {
  claimId: string;
  leases: Lease[];
  /** Jobs whose keys are full were moved out of the way: what lies behind them is worth another claim. */
  parked?: boolean;
}

export async function claim(db: Database, request: ClaimRequest): Promise<Claim> {
  const { quotas } = request;
  const claimId = newId();
  const rows = await db.query(claimJobs, [
    quotas.map(({ slice }) => slice.queue),
    quotas.map(({ slice }) => slice.tenantId),
    quotas.map(({ quota }) => quota),
    quotas.map(({ slice }) => slice.headRank),
    quotas.map(({ slice }) => slice.headReadyAt),
    quotas.map(({ slice }) => slice.headJobId),
    request.workerId,
    request.leaseSeconds,
    claimId,
    request.versions,
  ]);
  const leases = rows.filter((row) => !notRunning(row)).map(toLease);
  return { claimId, leases, parked: rows.length > leases.length };
}
