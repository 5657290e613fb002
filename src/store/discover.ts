import type { HandlerVersions, Slice } from "./claim.js";
import { type Database, statement } from "./database.js";

interface SliceRow {
  queue_name: string;
  tenant_id: string;
  rank: number;
  ready_at: string;
  job_id: string;
  ageing: boolean;
  weight: number;
  closed: boolean;
}

/** What a claim must know of a slice besides its head; `closed`: a limit of the tenant lets nothing start now. */
const details = `
  EXISTS (SELECT FROM {schema}.queues q
    WHERE q.queue_name = head.queue_name AND q.ageing_seconds IS NOT NULL) AS ageing,
  coalesce(t.weight, 1) AS weight,
  coalesce(t.max_running <= (SELECT count(*) FROM {schema}.slots s WHERE s.tenant_id = t.tenant_id), false)
    OR (t.start_limit IS NOT NULL AND EXISTS (
      SELECT FROM {schema}.turns u WHERE u.tenant_id = t.tenant_id AND u.opens_at > clock_timestamp())) AS closed`;

// A loose index scan: per queue one jump from tenant to tenant, starting after its $2, at most $3 of them, each
// with the first entry of its slice. Cost grows with the tenants visited, not with the jobs waiting.
const discoverSlices = statement<SliceRow>(
  "discover",
  `SELECT head.queue_name, head.tenant_id, head.rank, head.ready_at::text, head.job_id, ${details}
   FROM unnest($1::text[], $2::text[]) AS wanted(queue_name, after)
   CROSS JOIN LATERAL (
     WITH RECURSIVE head AS (
       (SELECT r.queue_name, r.tenant_id, r.rank, r.ready_at, r.job_id
        FROM {schema}.ready_jobs r
        WHERE r.queue_name = wanted.queue_name AND r.tenant_id > wanted.after
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
   ) head
   LEFT JOIN {schema}.tenants t ON t.tenant_id = head.tenant_id`,
);

const discoverTenant = statement<SliceRow>(
  "discover-tenant",
  `SELECT head.queue_name, head.tenant_id, head.rank, head.ready_at::text, head.job_id, ${details}
   FROM unnest($1::text[]) AS wanted(queue_name)
   CROSS JOIN LATERAL (
     SELECT r.queue_name, r.tenant_id, r.rank, r.ready_at, r.job_id
     FROM {schema}.ready_jobs r
     WHERE r.queue_name = wanted.queue_name AND r.tenant_id = $2 AND (r.pin IS NULL OR r.pin = ANY ($3))
     ORDER BY r.rank, r.ready_at, r.job_id LIMIT 1
   ) head
   LEFT JOIN {schema}.tenants t ON t.tenant_id = head.tenant_id`,
);

/** As ready_jobs.pin spells them. */
function pinsOf(versions: HandlerVersions): string[] {
  return Object.entries(versions).map(([type, version]) => `${type}@${version}`);
}

export interface DiscoverRequest {
  queues: string[];
  versions: HandlerVersions;
  /** Only this tenant; left out, all. */
  tenant?: string | undefined;
  /** How many tenants of each queue to visit. */
  limit: number;
  /** Queues of which an earlier look saw a part, and the tenant it ended at. */
  after?: ReadonlyMap<string, string>;
}

export interface Discovered {
  /** Slices that can be claimed from now. */
  slices: Slice[];
  /** Queues that have more tenants than were visited, and the last one that was. */
  more: Map<string, string>;
}

/** Which tenants have ready jobs in the queues. */
export async function discover(db: Database, request: DiscoverRequest): Promise<Discovered> {
  const { queues, versions, tenant, limit, after } = request;
  const rows =
    tenant === undefined
      ? await db.query(discoverSlices, [
          queues,
          queues.map((queue) => after?.get(queue) ?? ""),
          limit,
          pinsOf(versions),
        ])
      : await db.query(discoverTenant, [queues, tenant, pinsOf(versions)]);
  return {
    slices: rows.filter(({ closed }) => !closed).map(toSlice),
    more: tenant === undefined ? cutQueues(rows, limit) : new Map(),
  };
}

function cutQueues(rows: SliceRow[], limit: number): Map<string, string> {
  const seen = new Map<string, SliceRow[]>();
  for (const row of rows) seen.set(row.queue_name, [...(seen.get(row.queue_name) ?? []), row]);
  const cut = [...seen].filter(([, tenants]) => tenants.length >= limit);
  return new Map(cut.map(([queue, tenants]) => [queue, tenants.at(-1)?.tenant_id ?? ""]));
}

function toSlice(row: SliceRow): Slice {
  return {
    queue: row.queue_name,
    tenantId: row.tenant_id,
    headRank: row.rank,
    headReadyAt: row.ready_at,
    headJobId: row.job_id,
    ageing: row.ageing,
    weight: row.weight,
  };
}
