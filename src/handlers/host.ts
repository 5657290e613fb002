import type { JsonValue } from "../core/json.js";
import type { JobContext } from "./define.js";
import {
  type ArtifactContent,
  type EffectReply,
  fromErrorEnvelope,
  type HandlerMessage,
  toErrorEnvelope,
  type WorkerMessage,
} from "./protocol.js";
import type { Begun, EffectEnding, Recorder } from "./recorder.js";

type StepMessage = Extract<HandlerMessage, { step: unknown }>["step"];
type EffectMessage = Extract<HandlerMessage, { effect: unknown }>["effect"];

/** Serves what a handler in another thread or process says while it runs. Never throws. */
export async function serveMessage(
  { context, recorder }: { context: JobContext<unknown>; recorder: Recorder },
  message: HandlerMessage,
  answer: (reply: WorkerMessage) => void,
): Promise<void> {
  if ("progress" in message) {
    const { fraction, message: text, details } = message.progress;
    context.progress(fraction as number, text, details);
  } else if ("usage" in message) {
    context.usage(message.usage);
  } else if ("log" in message) {
    const { level, message: text, fields } = message.log;
    context.log[level](text, fields);
  } else if ("commit" in message) {
    const { name, sql, values } = message.commit;
    recorder.effects.onCommit(name, sql, values);
  } else if ("artifact" in message) {
    await reply(message.artifact.id, answer, () => keepArtifact(context, message.artifact));
  } else if ("step" in message) {
    await reply(message.step.id, answer, () => serveStep(recorder, message.step));
  } else if ("effect" in message) {
    await reply(message.effect.id, answer, () => serveEffect(recorder, message.effect));
  } else {
    const { id, effects } = message.plan;
    await reply(id, answer, () => recorder.effects.plan(effects).then(() => null));
  }
}

async function reply(
  id: number,
  answer: (reply: WorkerMessage) => void,
  work: () => Promise<JsonValue>,
): Promise<void> {
  try {
    answer({ reply: id, ok: true, value: await work() });
  } catch (error) {
    answer({ reply: id, ok: false, error: toErrorEnvelope(error) });
  }
}

async function serveStep({ steps }: Recorder, message: StepMessage): Promise<JsonValue> {
  if ("value" in message) return steps.remember(message.name, message.value);
  const known = await steps.recall(message.name);
  return known ? { known: true, value: known.value } : { known: false };
}

async function serveEffect({ effects }: Recorder, message: EffectMessage): Promise<JsonValue> {
  if ("outcome" in message) return effects.end(message.name, toEnding(message));
  const { name, kind, request } = message;
  return toReply(await effects.begin({ name, kind, request }));
}

function toReply(begun: Begun): EffectReply {
  if (begun.next === "done") return begun;
  return { next: begun.next === "send" ? "send" : "look_up", idempotency_key: begun.idempotencyKey };
}

function toEnding(message: Extract<EffectMessage, { outcome: unknown }>): EffectEnding {
  switch (message.outcome) {
    case "confirmed":
      return { state: "CONFIRMED", response: message.response };
    case "unknown":
      return { state: "UNKNOWN" };
    default:
      return {
        state: message.outcome === "failed" ? "FAILED" : "IN_DOUBT",
        error: fromErrorEnvelope(message.error),
      };
  }
}

async function keepArtifact(
  context: JobContext<unknown>,
  artifact: { name: string; media_type?: string } & ArtifactContent,
): Promise<JsonValue> {
  const { name, media_type: mediaType } = artifact;
  const content =
    "json" in artifact
      ? artifact.json
      : "text" in artifact
        ? artifact.text
        : Buffer.from(artifact.base64, "base64");
  return { ...(await context.artifact(name, content, mediaType === undefined ? {} : { mediaType })) };
}
