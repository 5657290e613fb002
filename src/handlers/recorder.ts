import type { EffectRequest } from "../core/effect.js";
import type { JsonValue } from "../core/json.js";

/** How an effect stands when its handler comes to it. */
export type Begun =
  /** The intent is committed: call, and say how it ended. */
  | { next: "send"; idempotencyKey: string }
  /** In doubt since an earlier attempt: look whether it happened, and say what was found. */
  | { next: "look up"; idempotencyKey: string }
  | { next: "done"; response: JsonValue };

/** How a call ended, or what a lookup found. */
export type EffectEnding =
  | { state: "CONFIRMED"; response: unknown }
  | { state: "FAILED" | "IN_DOUBT"; error: unknown }
  /** The lookup cannot tell: only a person can. */
  | { state: "UNKNOWN" };

/**
 * What `step` and `effect` are made of, wherever the handler runs: in the worker's process the record itself, elsewhere
 * messages to it. A write that is refused because the attempt has lost its job is thrown.
 */
export interface Recorder {
  steps: StepRecorder;
  effects: EffectRecorder;
}

export interface StepRecorder {
  /** The step's value if it has been stored before. */
  recall(name: string): Promise<{ value: JsonValue } | undefined>;
  /** Stores a step's value; resolves, once it is durable, with what a later attempt would get. */
  remember(name: string, value: unknown): Promise<JsonValue>;
}

export interface EffectRecorder {
  begin(effect: EffectRequest): Promise<Begun>;
  /** Records the outcome; resolves with the response as it is kept. */
  end(name: string, ending: EffectEnding): Promise<JsonValue>;
  plan(effects: EffectRequest[]): Promise<void>;
  onCommit(name: string, sql: string, values: JsonValue[]): void;
}
