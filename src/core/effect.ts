import type { StoredError } from "./job.js";
import type { JsonValue } from "./json.js";

/** What may be done about an effect in doubt: send it again, ask the other side, or ask a person. */
export const effectKinds = ["idempotent", "reconcilable", "unsafe"] as const;
export type EffectKind = (typeof effectKinds)[number];

export const effectStates = ["PLANNED", "DISPATCHED", "CONFIRMED", "FAILED", "IN_DOUBT"] as const;
export type EffectState = (typeof effectStates)[number];

/** What a person may say about an effect in doubt. */
export const resolutions = ["confirmed", "failed", "retry"] as const;
export type Resolution = (typeof resolutions)[number];

/** An effect as a handler announces it: `key` is its name among the job's effects, the same in every attempt. */
export interface EffectSpec {
  key: string;
  kind: EffectKind;
  /** All that the call depends on, as JSON. Under one key it may never change. */
  request: JsonValue;
}

/** What is to be done outside, before it is done. */
export interface EffectRequest {
  name: string;
  kind: EffectKind;
  request: JsonValue;
}

/** A side effect as the table keeps it. */
export interface Effect extends Omit<EffectRequest, "kind"> {
  effectId: string;
  jobId: string;
  tenantId: string;
  /** `database`: SQL that was committed together with the result. */
  kind: EffectKind | "database";
  state: EffectState;
  idempotencyKey: string;
  /** The place among the handler's calls. */
  seq: number;
  requestHash: string;
  /** Null until it is CONFIRMED. */
  response: JsonValue | null;
  responseHash: string | null;
  error: StoredError | null;
  /** Of the attempt that planned it or sent it last; 0 when it was taken over by a replay. */
  attemptNo: number;
  dispatches: number;
  plannedAt: Date;
  approvedAt: Date | null;
  dispatchedAt: Date | null;
  settledAt: Date | null;
  inDoubtAt: Date | null;
  approvedBy: string | null;
  resolvedBy: string | null;
  evidence: string | null;
}

/** A remembered step. */
export interface Step {
  name: string;
  seq: number;
  /** Of the attempt that ran it; 0 when it was taken over by a replay. */
  attemptNo: number;
  valueHash: string;
  /** Undefined where it is kept as an artifact. */
  value: JsonValue | undefined;
  artifactId: string | null;
  createdAt: Date;
}
