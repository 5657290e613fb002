import type { Activity } from "../core/activity.js";
import { type Database, statement } from "./database.js";

/** Activity is kept in pieces of so many seconds, for a day and an hour. */
export const SLOT_SECONDS = 10;

export interface ActivityRow {
  /** Empty: all tenants together. */
  tenantId: string;
  /** Seconds since 1970, by the database's clock. */
  slot: number;
  counts: Activity;
}

// A worker's rows are its own, so nobody waits for anybody; writing them again says the same again.
const writeActivity = statement<{ now: number }>(
  "write-activity",
  `WITH written AS (
     INSERT INTO {schema}.activity (slot, tenant_id, worker_id, counts)
     SELECT to_timestamp(a.slot), a.tenant_id, $1, a.counts
     FROM jsonb_to_recordset($2::jsonb) AS a(slot float8, tenant_id text, counts jsonb)
     ON CONFLICT (tenant_id, slot, worker_id) DO UPDATE SET counts = excluded.counts
   ), forgotten AS (
     DELETE FROM {schema}.activity WHERE $3 AND slot < clock_timestamp() - interval '25 hours'
   )
   SELECT extract(epoch FROM clock_timestamp())::float8 AS now`,
);

const readActivity = statement<{ slot: number; counts: Activity }>(
  "read-activity",
  `SELECT extract(epoch FROM a.slot)::float8 AS slot, a.counts FROM {schema}.activity a
   WHERE a.tenant_id = $1 AND a.slot >= to_timestamp($2)`,
);

/** Writes what a worker did and returns the database's clock; `forget` also removes what is old. */
export async function recordActivity(
  db: Database,
  workerId: string,
  rows: ActivityRow[],
  forget: boolean,
): Promise<number> {
  const written = rows.map(({ tenantId, slot, counts }) => ({ tenant_id: tenantId, slot, counts }));
  const [row] = await db.query(writeActivity, [workerId, JSON.stringify(written), forget]);
  return row?.now ?? 0;
}

export function activitySince(
  db: Database,
  tenantId: string | undefined,
  since: number,
): Promise<{ slot: number; counts: Activity }[]> {
  return db.query(readActivity, [tenantId ?? "", since]);
}
