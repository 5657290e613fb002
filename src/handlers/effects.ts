import { type EffectRequest, type EffectSpec, effectKinds } from "../core/effect.js";
import { EffectFailed, OracleError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import type { Begun, EffectRecorder, StepRecorder } from "./recorder.js";

/** What an effect's function is given. */
export interface EffectCall {
  /** The same in every attempt: send it with the request. */
  idempotencyKey: string;
  /** The request as it was recorded. */
  request: JsonValue;
  signal: AbortSignal;
}

/** What a lookup found out about an effect in doubt. `unknown` holds the job until a person decides. */
export type Found<T> = { happened: true; response: T } | { happened: false } | { happened: "unknown" };

/**
 * What to do when nobody knows whether it happened is its `kind`. `idempotent`: send it again with the same key.
 * `reconcilable`: ask `lookup`. `unsafe`: hold the job until a person decides.
 */
export interface EffectOptions<T> extends EffectSpec {
  /** For `reconcilable`: asks the other side whether the effect has happened. */
  lookup?(call: EffectCall): Promise<Found<T>> | Found<T>;
}

/** Runs a step once; later attempts get its value. */
export async function runStep<T>(recorder: StepRecorder, name: string, fn: () => Promise<T> | T): Promise<T> {
  checkName("step", name);
  const known = await recorder.recall(name);
  return (known ? known.value : await recorder.remember(name, await fn())) as T;
}

/** Commits the intent, calls, records the outcome; or does what an earlier attempt's outcome asks for. */
export async function runEffect<T>(
  recorder: EffectRecorder,
  options: EffectOptions<T>,
  fn: (call: EffectCall) => Promise<T> | T,
  signal: () => AbortSignal,
): Promise<T> {
  const effect = toEffectRequest(options);
  if (effect.kind === "reconcilable" && typeof options.lookup !== "function") {
    throw invalid(`effect ${effect.name}: kind reconcilable needs a lookup function.`, "lookup");
  }
  let begun = await recorder.begin(effect);
  if (begun.next === "look up") begun = await lookUp(recorder, options, begun.idempotencyKey, signal());
  if (begun.next === "done") return begun.response as T;
  const { idempotencyKey } = begun;
  let response: T;
  try {
    response = await fn({ idempotencyKey, request: asRecorded(effect.request), signal: signal() });
  } catch (error) {
    await recorder.end(effect.name, { state: error instanceof EffectFailed ? "FAILED" : "IN_DOUBT", error });
    throw error;
  }
  return (await recorder.end(effect.name, { state: "CONFIRMED", response })) as T;
}

async function lookUp<T>(
  recorder: EffectRecorder,
  options: EffectOptions<T>,
  idempotencyKey: string,
  signal: AbortSignal,
): Promise<Begun> {
  const { key: name, request } = options;
  const found = await options.lookup?.({ idempotencyKey, request: asRecorded(request), signal });
  if (found?.happened === true) {
    const response = await recorder.end(name, { state: "CONFIRMED", response: found.response });
    return { next: "done", response };
  }
  if (found?.happened === false) {
    const error = new EffectFailed("the lookup found that it had not happened");
    await recorder.end(name, { state: "FAILED", error });
    return recorder.begin(toEffectRequest(options));
  }
  await recorder.end(name, { state: "UNKNOWN" });
  throw new Error("a doubt that a lookup cannot clear ends the attempt");
}

/** What is sent is what was recorded, and a copy of it. */
function asRecorded(request: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(request)) as JsonValue;
}

/** A whole plan. */
export function toEffectRequests(planned: EffectSpec[]): EffectRequest[] {
  if (!Array.isArray(planned)) {
    throw invalid(
      `plan: ${planned === null ? "null" : typeof planned} is given; it must be a list of { key, kind, request }.`,
      "effects",
    );
  }
  return planned.map(toEffectRequest);
}

/** A handler's word for it, as it is recorded. */
function toEffectRequest(spec: EffectSpec): EffectRequest {
  if (typeof spec !== "object" || spec === null) {
    throw invalid(`effect: ${String(spec)} is given; it must be { key, kind, request }.`, "effect");
  }
  const { key, kind, request } = spec;
  return checkEffect({ name: key, kind, request });
}

export function checkEffect({ name, kind, request }: EffectRequest): EffectRequest {
  checkName("effect", name);
  if (!effectKinds.includes(kind)) {
    throw invalid(`effect ${name}: kind is ${String(kind)}; it must be ${effectKinds.join(", ")}.`, "kind");
  }
  return { name, kind, request: request ?? null };
}

export function checkName(what: "step" | "effect" | "onCommit", name: unknown): asserts name is string {
  if (typeof name === "string" && name.length >= 1 && name.length <= 200 && isPlain(name)) return;
  const field = what === "effect" ? "key" : "name";
  throw invalid(
    `${what}: the ${field} is ${JSON.stringify(name)}; it must be a text of 1 to 200 characters without NUL.`,
    field,
  );
}

export function invalid(message: string, field: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", message, { field });
}

function isPlain(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}
