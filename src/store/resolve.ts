import type { Effect, EffectState, Resolution } from "../core/effect.js";
import { JobPreconditionError, OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import { type JsonValue, toJsonText } from "../core/json.js";
import { type Database, statement } from "./database.js";
import { type EffectRow, effectColumns, toEffect } from "./effect-row.js";
import { checkJobId } from "./read.js";

const readEffect = statement<EffectRow>(
  "read-effect",
  `SELECT ${effectColumns} FROM {schema}.effects e WHERE e.effect_id = $1`,
);

// 011_endings.sql: records the person's word, audits it and lifts the hold when no unsafe doubt is left.
const resolveEffect = statement<{ job_id: string; state: EffectState; resolved: boolean }>(
  "resolve-effect",
  `SELECT * FROM {schema}.resolve_effect($1, $2, $3, $4, $5)`,
);

/** What a person found out: the outcome, how they know, and for `confirmed` what the handler shall get. */
export interface Finding {
  outcome: Resolution;
  evidence: string;
  response?: JsonValue;
}

/** The effect, or the error that names it. */
export async function requireEffect(db: Database, effectId: string): Promise<Effect> {
  const [row] = await db.query(readEffect, [checkJobId(effectId, "effect")]);
  if (row) return toEffect(row);
  throw new OracleError("EFFECT_NOT_FOUND", `There is no effect ${effectId}.`, { field: "effect" });
}

/** Settles an effect in doubt by a person's word. */
export async function resolve(db: Database, effectId: string, finding: Finding): Promise<Effect> {
  const { outcome, evidence, response = null } = finding;
  if (outcome !== "confirmed" && finding.response !== undefined) {
    throw new OracleError("INVALID_ARGUMENT", "A response goes with the outcome confirmed only.", {
      field: "response",
    });
  }
  const [row] = await db.query(resolveEffect, [
    checkJobId(effectId, "effect"),
    outcome,
    evidence,
    toJsonText(response),
    contentHash(response),
  ]);
  const effect = await requireEffect(db, effectId);
  if (!row?.resolved) {
    throw new JobPreconditionError(
      effect.jobId,
      `has effect ${effectId} as ${effect.state}; only one IN_DOUBT can be resolved`,
    );
  }
  return effect;
}
