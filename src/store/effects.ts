import type { Effect, EffectKind, EffectState } from "../core/effect.js";
import type { StoredError } from "../core/job.js";
import { type Database, statement } from "./database.js";
import { type EffectRow, effectColumns, toEffect } from "./effect-row.js";
import type { Fence } from "./steps.js";

/** An effect about to be sent. */
export interface Intent {
  lease: Fence;
  name: string;
  seq: number;
  kind: EffectKind;
  /** JSON text. */
  request: string;
  requestHash: string;
}

/** The right to send an effect now. */
export interface Leave {
  idempotencyKey: string;
  /** What was left of the lease when the intent was committed. */
  leaseLeftSeconds: number;
}

/** How a call ended, or what a lookup found. */
export interface Ending {
  lease: Fence;
  name: string;
  state: Exclude<EffectState, "PLANNED" | "DISPATCHED">;
  /** JSON text, when CONFIRMED. */
  response: string | null;
  responseHash: string | null;
  error: StoredError | null;
}

// 010_steps_and_effects.sql: commits intents, under the fence, and returns those that may be sent.
const beginEffects = statement<{ job_id: string; name: string; effect_id: string; lease_left: number }>(
  "begin-effects",
  `SELECT * FROM {schema}.begin_effects($1, $2, $3, $4, $5, $6, $7)`,
);

// 010_steps_and_effects.sql: records outcomes, under the fence.
const endEffects = statement<{ job_id: string; name: string }>(
  "end-effects",
  `SELECT * FROM {schema}.end_effects($1, $2, $3, $4, $5, $6, $7)`,
);

// Why an intent was not granted: the job's side, and the effect as it stands.
const lookAtEffect = statement<EffectRow & { ours: boolean; cancelled: boolean }>(
  "look-at-effect",
  `SELECT j.current_attempt_id = $2 AND j.state = 'RUNNING' AS ours,
     j.cancel_requested_at IS NOT NULL AS cancelled, ${effectColumns}
   FROM {schema}.jobs j LEFT JOIN {schema}.effects e ON e.job_id = j.job_id AND e.name = $3
   WHERE j.job_id = $1`,
);

/** Commits intents of many jobs in one statement; undefined where the effect may not be sent. */
export async function begin(db: Database, intents: Intent[]): Promise<(Leave | undefined)[]> {
  const rows = await db.query(beginEffects, [
    ...columns(intents),
    intents.map(({ seq }) => seq),
    intents.map(({ kind }) => kind),
    intents.map(({ request }) => request),
    intents.map(({ requestHash }) => requestHash),
  ]);
  const leaves = new Map(rows.map((row) => [key(row.job_id, row.name), row]));
  return intents.map(({ lease, name }) => {
    const row = leaves.get(key(lease.jobId, name));
    return row && { idempotencyKey: row.effect_id, leaseLeftSeconds: row.lease_left };
  });
}

/** Records outcomes of many jobs in one statement; false where it was not this attempt's to record. */
export async function end(db: Database, endings: Ending[]): Promise<boolean[]> {
  const rows = await db.query(endEffects, [
    ...columns(endings),
    endings.map(({ state }) => state),
    endings.map(({ response }) => response),
    endings.map(({ responseHash }) => responseHash),
    endings.map(({ error }) => error && JSON.stringify(error)),
  ]);
  const recorded = new Set(rows.map((row) => key(row.job_id, row.name)));
  return endings.map(({ lease, name }) => recorded.has(key(lease.jobId, name)));
}

/** How an effect stands, and whether its job is still the attempt's and not to be cancelled. */
export async function look(
  db: Database,
  lease: Fence,
  name: string,
): Promise<{ ours: boolean; cancelled: boolean; effect: Effect | undefined }> {
  const [row] = await db.query(lookAtEffect, [lease.jobId, lease.attemptId, name]);
  return {
    ours: row?.ours ?? false,
    cancelled: row?.cancelled ?? false,
    effect: row?.effect_id ? toEffect(row) : undefined,
  };
}

function columns(entries: { lease: Fence; name: string }[]): string[][] {
  return [
    entries.map(({ lease }) => lease.jobId),
    entries.map(({ lease }) => lease.attemptId),
    entries.map(({ name }) => name),
  ];
}

function key(jobId: string, name: string): string {
  return `${jobId} ${name}`;
}
