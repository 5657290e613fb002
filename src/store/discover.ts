import type { HandlerVersions, Slice } from "./claim.js";
import { type Database, statement } from "./database.js";

interface SliceRow {
  queue_name: string;
  tenant_id: string;
  rank: number;
  ready_at: string;
  job_id: string;
  ageing: boolean;
}

// A loose index scan: per queue one jump from tenant to tenant, starting after $2, at most $3 of them, each
// with the first entry of its slice. Cost grows with the tenants visited, not with the jobs waiting.
const discoverSlices = statement<SliceRow>(
  "discover",
  `SELECT head.queue_name, head.tenant_id, head.rank, head.ready_at::text, head.job_id,
     EXISTS (SELECT FROM {schema}.queues q
       WHERE q.queue_name = head.queue_name AND q.ageing_seconds IS NOT NULL) AS ageing
   FROM unnest($1::text[]) AS wanted(queue_name)
   CROSS JOIN LATERAL (
     WITH RECURSIVE head AS (
       (SELECT r.queue_name, r.tenant_id, r.rank, r.ready_at, r.job_id
        FROM {schema}.ready_jobs r
        WHERE r.queue_name = wanted.queue_name AND r.tenant_id > $2
          AND (r.pin IS NULL OR r.pin = ANY ($4))
        ORDER BY r.tenant_id, r.rank, r.ready_at, r.job_id LIMIT 1)
       UNION ALL
       SELECT next.* FROM head CROSS JOIN LATERAL (
         SELECT r.queue_name, r.tenant_id, r.rank, r.ready_at, r.job_id
         FROM {schema}.ready_jobs r
         WHERE r.queue_name = wanted.queue_name AND r.tenant_id > head.tenant_id
           AND (r.pin IS NULL OR r.pin = ANY ($4))
         ORDER BY r.tenant_id, r.rank, r.ready_at, r.job_id LIMIT 1
       ) next
     )
     SELECT * FROM head LIMIT $3
   ) head`,
);

/** As ready_jobs.pin spells them. */
function pinsOf(versions: HandlerVersions): string[] {
  return Object.entries(versions).map(([type, version]) => `${type}@${version}`);
}

/** Which tenants have ready jobs in the queues, from the tenant after `after` on. */
export async function discover(
  db: Database,
  queues: string[],
  after: string,
  limit: number,
  versions: HandlerVersions,
): Promise<Slice[]> {
  const rows = await db.query(discoverSlices, [queues, after, limit, pinsOf(versions)]);
  return rows.map((row) => ({
    queue: row.queue_name,
    tenantId: row.tenant_id,
    headRank: row.rank,
    headReadyAt: row.ready_at,
    headJobId: row.job_id,
    ageing: row.ageing,
  }));
}
