import type { Effect, EffectState, Step } from "../core/effect.js";
import type { Colour } from "./style.js";
import { table } from "./table.js";
import { relative } from "./time.js";

/** As machines read it: the names of the table. */
export function effectJson(effect: Effect) {
  return {
    effect_id: effect.effectId,
    job_id: effect.jobId,
    tenant_id: effect.tenantId,
    name: effect.name,
    kind: effect.kind,
    state: effect.state,
    idempotency_key: effect.idempotencyKey,
    request: effect.request,
    request_hash: effect.requestHash,
    response: effect.response,
    response_hash: effect.responseHash,
    error: effect.error,
    attempt_no: effect.attemptNo,
    dispatches: effect.dispatches,
    planned_at: effect.plannedAt,
    approved_at: effect.approvedAt,
    approved_by: effect.approvedBy,
    dispatched_at: effect.dispatchedAt,
    settled_at: effect.settledAt,
    in_doubt_at: effect.inDoubtAt,
    resolved_by: effect.resolvedBy,
    evidence: effect.evidence,
  };
}

export function stepJson(step: Step) {
  return {
    name: step.name,
    seq: step.seq,
    attempt_no: step.attemptNo,
    value_hash: step.valueHash,
    ...(step.artifactId === null ? { value: step.value } : { artifact_id: step.artifactId }),
    created_at: step.createdAt,
  };
}

const colours: Partial<Record<EffectState, Colour>> = {
  DISPATCHED: "cyan",
  CONFIRMED: "green",
  FAILED: "red",
  IN_DOUBT: "yellow",
};

export function effectTable(effects: readonly Effect[]): string {
  return table(effects, [
    { title: "EFFECT", value: ({ effectId }) => effectId },
    { title: "STATE", value: ({ state }) => state, colour: ({ state }) => colours[state] },
    { title: "KIND", value: ({ kind }) => kind },
    { title: "NAME", value: ({ name }) => name },
    { title: "SENT", value: ({ dispatches }) => dispatches, align: "right" },
    { title: "SINCE", value: (effect) => relative(since(effect)) },
    { title: "JOB", value: ({ jobId }) => jobId },
    { title: "REQUEST", value: ({ request }) => short(request) },
  ]);
}

export function stepTable(steps: readonly Step[]): string {
  return table(steps, [
    { title: "STEP", value: ({ name }) => name },
    { title: "ATTEMPT", value: ({ attemptNo }) => attemptNo || "replayed", align: "right" },
    { title: "AT", value: ({ createdAt }) => relative(createdAt) },
    {
      title: "VALUE",
      value: ({ value, artifactId }) => (artifactId ? `artifact ${artifactId}` : short(value)),
    },
  ]);
}

function since({ settledAt, inDoubtAt, dispatchedAt, plannedAt }: Effect): Date {
  return settledAt ?? inDoubtAt ?? dispatchedAt ?? plannedAt;
}

function short(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
