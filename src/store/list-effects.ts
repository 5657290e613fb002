import type { Effect, EffectState } from "../core/effect.js";
import { type Database, statement } from "./database.js";
import { type EffectRow, effectColumns, toEffect } from "./effect-row.js";
import { checkJobId } from "./read.js";

const effectsOfJob = statement<EffectRow>(
  "read-effects",
  `SELECT ${effectColumns} FROM {schema}.effects e WHERE e.job_id = $1 ORDER BY e.seq, e.name`,
);

// Oldest first: what has been in doubt longest is what somebody waits for.
const inDoubt = statement<EffectRow>(
  "effects-in-doubt",
  `SELECT ${effectColumns} FROM {schema}.effects e
   WHERE e.in_doubt_at IS NOT NULL AND ($1::text IS NULL OR e.tenant_id = $1)
   ORDER BY e.in_doubt_at, e.effect_id LIMIT $2`,
);

const listEffects = statement<EffectRow>(
  "list-effects",
  `SELECT ${effectColumns} FROM {schema}.effects e
   WHERE ($1::text IS NULL OR e.tenant_id = $1) AND ($2::text IS NULL OR e.state = $2::{schema}.oracle_effect_state)
   ORDER BY e.job_id DESC, e.name LIMIT $3`,
);

export async function getEffects(db: Database, jobId: string): Promise<Effect[]> {
  return (await db.query(effectsOfJob, [checkJobId(jobId)])).map(toEffect);
}

export interface EffectFilter {
  state?: EffectState | undefined;
  tenantId?: string | undefined;
  limit?: number | undefined;
}

/** Those in doubt oldest first, others by job, newest first. */
export async function findEffects(db: Database, filter: EffectFilter): Promise<Effect[]> {
  const { state, tenantId, limit = 50 } = filter;
  const rows =
    state === "IN_DOUBT"
      ? await db.query(inDoubt, [tenantId, limit])
      : await db.query(listEffects, [tenantId, state, limit]);
  return rows.map(toEffect);
}
