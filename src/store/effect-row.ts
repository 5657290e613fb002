import type { Effect, EffectState } from "../core/effect.js";
import type { StoredError } from "../core/job.js";
import type { JsonValue } from "../core/json.js";

export interface EffectRow {
  effect_id: string;
  job_id: string;
  tenant_id: string;
  name: string;
  kind: Effect["kind"];
  state: EffectState;
  idempotency_key: string;
  seq: number;
  request: JsonValue;
  request_hash: string;
  response: JsonValue | null;
  response_hash: string | null;
  error_json: StoredError | null;
  attempt_no: number;
  dispatches: number;
  planned_at: Date;
  approved_at: Date | null;
  dispatched_at: Date | null;
  settled_at: Date | null;
  in_doubt_at: Date | null;
  approved_by: string | null;
  resolved_by: string | null;
  evidence: string | null;
}

export const effectColumns = `e.effect_id, e.job_id, e.tenant_id, e.name, e.kind::text AS kind,
  e.state::text AS state, e.idempotency_key, e.seq, e.request, e.request_hash, e.response, e.response_hash, e.error_json,
  e.attempt_no, e.dispatches, e.planned_at, e.approved_at, e.dispatched_at, e.settled_at, e.in_doubt_at,
  e.approved_by, e.resolved_by, e.evidence`;

export function toEffect(row: EffectRow): Effect {
  return {
    effectId: row.effect_id,
    jobId: row.job_id,
    tenantId: row.tenant_id,
    name: row.name,
    kind: row.kind,
    state: row.state,
    idempotencyKey: row.idempotency_key,
    seq: row.seq,
    request: row.request,
    requestHash: row.request_hash,
    response: row.response,
    responseHash: row.response_hash,
    error: row.error_json,
    attemptNo: row.attempt_no,
    dispatches: row.dispatches,
    plannedAt: row.planned_at,
    approvedAt: row.approved_at,
    dispatchedAt: row.dispatched_at,
    settledAt: row.settled_at,
    inDoubtAt: row.in_doubt_at,
    approvedBy: row.approved_by,
    resolvedBy: row.resolved_by,
    evidence: row.evidence,
  };
}
