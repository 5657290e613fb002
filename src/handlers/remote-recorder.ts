import type { EffectRequest } from "../core/effect.js";
import { type JsonValue, toJsonText } from "../core/json.js";
import { type EffectOutcome, type EffectReply, type HandlerMessage, toErrorEnvelope } from "./protocol.js";
import type { Begun, EffectEnding, Recorder } from "./recorder.js";

type Call = (message: (id: number) => HandlerMessage) => Promise<JsonValue>;

/** Steps and effects of a handler in another thread or process: each question goes to the worker as a message. */
export function remoteRecorder(call: Call, send: (message: HandlerMessage) => void): Recorder {
  return {
    steps: {
      async recall(name) {
        const reply = await call((id) => ({ step: { id, name } }));
        const { known, value } = reply as { known: boolean; value?: JsonValue };
        return known ? { value: value as JsonValue } : undefined;
      },
      remember: (name, value) => call((id) => ({ step: { id, name, value: plain(value) } })),
    },
    effects: {
      async begin(effect) {
        const asked = { ...effect, request: plain(effect.request) };
        return toBegun((await call((id) => ({ effect: { id, ...asked } }))) as EffectReply);
      },
      async end(name, ending) {
        const [outcome, refused] = toOutcome(name, ending);
        const kept = await call((id) => ({ effect: { id, ...outcome } }));
        if (refused) throw refused;
        return kept;
      },
      async plan(effects) {
        const planned = effects.map(
          (effect): EffectRequest => ({ ...effect, request: plain(effect.request) }),
        );
        await call((id) => ({ plan: { id, effects: planned } }));
      },
      onCommit: (name, sql, values) => send({ commit: { name, sql, values: plain(values) as JsonValue[] } }),
    },
  };
}

function toBegun(reply: EffectReply): Begun {
  if (reply.next === "done") return reply;
  return { next: reply.next === "send" ? "send" : "look up", idempotencyKey: reply.idempotency_key };
}

/** A response that cannot be kept leaves the effect in doubt, and is the handler's to hear of. */
function toOutcome(name: string, ending: EffectEnding): [EffectOutcome, unknown?] {
  if (ending.state === "UNKNOWN") return [{ name, outcome: "unknown" }];
  if (ending.state !== "CONFIRMED") {
    const outcome = ending.state === "FAILED" ? "failed" : "in_doubt";
    return [{ name, outcome, error: toErrorEnvelope(ending.error) }];
  }
  try {
    return [{ name, outcome: "confirmed", response: plain(ending.response) }];
  } catch (error) {
    return [{ name, outcome: "in_doubt", error: toErrorEnvelope(error) }, error];
  }
}

/** The worker judges the size. */
const anySize = { maxBytes: Number.POSITIVE_INFINITY, maxDepth: 500 };

/** As it will be kept. What is no JSON is refused here, where the handler's own call shows in the stack. */
function plain(value: unknown): JsonValue {
  return JSON.parse(toJsonText(value, anySize)) as JsonValue;
}
