import type { JsonValue } from "../core/json.js";
import type { JobContext } from "./define.js";
import {
  type ArtifactContent,
  type HandlerMessage,
  toErrorEnvelope,
  type WorkerMessage,
} from "./protocol.js";

/** Serves what a handler in another thread or process says while it runs. Never throws. */
export async function serveMessage(
  context: JobContext<unknown>,
  message: HandlerMessage,
  answer: (reply: WorkerMessage) => void,
): Promise<void> {
  if ("progress" in message) {
    const { fraction, message: text, details } = message.progress;
    context.progress(fraction, text, details);
  } else if ("log" in message) {
    const { level, message: text, fields } = message.log;
    context.log[level](text, fields);
  } else await reply(message.artifact.id, answer, () => keepArtifact(context, message.artifact));
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

async function keepArtifact(
  context: JobContext<unknown>,
  artifact: { name: string; media_type?: string } & ArtifactContent,
): Promise<JsonValue> {
  const { name, media_type: mediaType } = artifact;
  const content =
    "json" in artifact
      ? artifact.json
      : "text" in artifact
        ? Buffer.from(artifact.text, "utf8")
        : Buffer.from(artifact.base64, "base64");
  return { ...(await context.artifact(name, content, mediaType === undefined ? {} : { mediaType })) };
}
