import type { Effect, EffectState } from "../core/effect.js";
import { type Database, statement } from "./database.js";
import { type EffectRow, effectColumns, toEffect } from "./effect-row.js";

/** So many effects are looked at for one page; it may be short although there is a next one. */
const LOOK = 20_000;

// Oldest first: what has been in doubt longest is what somebody waits for.
const inDoubt = statement<EffectRow & { place: string }>(
  "page-effects-in-doubt",
  `SELECT ${effectColumns}, round(extract(epoch FROM e.in_doubt_at) * 1000000)::bigint::text AS place
   FROM {schema}.effects e
   WHERE e.in_doubt_at IS NOT NULL AND ($1::text IS NULL OR e.tenant_id = $1)
     AND ($2::bigint IS NULL
       OR (e.in_doubt_at, e.effect_id) > (timestamptz 'epoch' + $2 * interval '1 microsecond', $3::uuid))
   ORDER BY e.in_doubt_at, e.effect_id LIMIT $4`,
);

// By job, newest first, in the order of the primary key. The last row only tells how far it looked.
const byJob = statement<EffectRow & { reached: boolean }>(
  "page-effects",
  `WITH looked AS MATERIALIZED (
     SELECT e.job_id, e.name, ($1::text IS NULL OR e.tenant_id = $1)
       AND ($2::text IS NULL OR e.state = $2::{schema}.oracle_effect_state) AS hit
     FROM {schema}.effects e WHERE (e.job_id, e.name) < ($3::uuid, $4)
     ORDER BY e.job_id DESC, e.name DESC LIMIT ${LOOK}
   ), shown AS (
     (SELECT job_id, name, false AS reached FROM looked WHERE hit LIMIT $5)
     UNION ALL
     (SELECT job_id, name, true FROM looked OFFSET ${LOOK - 1} LIMIT 1)
   )
   SELECT ${effectColumns}, s.reached FROM shown s CROSS JOIN LATERAL (
     SELECT * FROM {schema}.effects e WHERE e.job_id = s.job_id AND e.name = s.name LIMIT 1) e
   ORDER BY s.reached, e.job_id DESC, e.name DESC`,
);

export interface EffectPage {
  items: Effect[];
  /** Microseconds since 1970 and an effect's id, or a job's id and an effect's name; null at the end. */
  next: [string, string] | null;
}

export interface EffectPaging {
  state?: EffectState | undefined;
  tenantId?: string | undefined;
  after?: [string, string] | undefined;
  limit: number;
}

export async function pageEffects(db: Database, paging: EffectPaging): Promise<EffectPage> {
  return paging.state === "IN_DOUBT" ? pageInDoubt(db, paging) : pageByJob(db, paging);
}

async function pageInDoubt(db: Database, { tenantId, after, limit }: EffectPaging): Promise<EffectPage> {
  const rows = await db.query(inDoubt, [tenantId, after?.[0], after?.[1], limit + 1]);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(toEffect),
    next: rows.length > limit && last ? [last.place, last.effect_id] : null,
  };
}

const BEHIND_ALL: [string, string] = ["ffffffff-ffff-ffff-ffff-ffffffffffff", ""];

async function pageByJob(db: Database, paging: EffectPaging): Promise<EffectPage> {
  const { state, tenantId, after = BEHIND_ALL, limit } = paging;
  const rows = await db.query(byJob, [tenantId, state, ...after, limit + 1]);
  const hits = rows.filter(({ reached }) => !reached);
  const last = hits.length > limit ? hits[limit - 1] : rows.find(({ reached }) => reached);
  return { items: hits.slice(0, limit).map(toEffect), next: last ? [last.job_id, last.name] : null };
}
