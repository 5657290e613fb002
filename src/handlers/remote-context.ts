import type { EffectSpec } from "../core/effect.js";
import type { LogLevel } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { toLooseJsonText } from "../core/json-loose.js";
import { type ArtifactRef, type ArtifactSource, isStream, type JobContext } from "./define.js";
import { runEffect, runStep, toEffectRequests } from "./effects.js";
import { follow, leftOpen } from "./open-calls.js";
import {
  type ArtifactContent,
  fromCancel,
  fromErrorEnvelope,
  type HandlerMessage,
  type RequestEnvelope,
  type WorkerMessage,
} from "./protocol.js";
import type { Recorder } from "./recorder.js";
import { remoteRecorder } from "./remote-recorder.js";
import { Snooze } from "./snooze.js";

/** A handler's context in another thread or process than its worker: what it asks for goes out as messages. */
export class RemoteContext {
  private readonly controller = new AbortController();
  private readonly calls = new Map<number, { resolve(value: JsonValue): void; reject(error: Error): void }>();
  private lastCall = 0;
  /** Steps, effects and plans under way: the worker hears of a step only before and after its function. */
  private readonly open = new Set<Promise<unknown>>();

  constructor(
    private readonly request: RequestEnvelope,
    private readonly send: (message: HandlerMessage) => void,
  ) {}

  /** What the worker says to this attempt. */
  hear(message: WorkerMessage): void {
    if ("cancel" in message) {
      this.controller.abort(fromCancel(message.cancel.reason));
      return;
    }
    const call = this.calls.get(message.reply);
    this.calls.delete(message.reply);
    if (message.ok) call?.resolve(message.value);
    else call?.reject(fromErrorEnvelope(message.error));
  }

  /** The handler has returned: throws if it has not awaited everything. */
  finish(): void {
    if (this.open.size > 0) throw leftOpen();
  }

  context(): JobContext<unknown> {
    const { request, send, open } = this;
    const { steps, effects } = remoteRecorder((message) => this.call(message), send);
    const log = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) =>
      send({
        log: {
          level,
          message: toText(message),
          ...(fields ? { fields: toLoose(fields) as Record<string, JsonValue> } : {}),
        },
      });
    return {
      input: request.input,
      job: {
        id: request.job_id,
        type: request.job_type,
        tenantId: request.tenant_id,
        queue: request.queue,
        idempotencyKey: request.idempotency_key,
        attemptId: request.attempt_id,
        attemptNo: request.attempt_no,
        deadline: request.deadline === null ? null : new Date(request.deadline),
      },
      signal: this.controller.signal,
      log: { info: log("info"), warn: log("warn"), error: log("error") },
      progress: (fraction, message, details) =>
        send({
          progress: {
            // One that is no number the worker answers with a warning in the log.
            fraction: typeof fraction === "number" ? Math.min(1, Math.max(0, fraction)) : toLoose(fraction),
            ...(message === undefined ? {} : { message: toText(message) }),
            ...(details === undefined ? {} : { details: toLoose(details) }),
          },
        }),
      usage: (used) => send({ usage: used }),
      artifact: async (name, content, options) => {
        const sent = await toContent(content);
        const kept = await this.call((id) => ({
          artifact: {
            id,
            name,
            ...(options?.mediaType === undefined ? {} : { media_type: options.mediaType }),
            ...sent,
          },
        }));
        return kept as unknown as ArtifactRef;
      },
      step: (name, fn) => follow(open, runStep(steps, name, fn)),
      effect: (options, fn) =>
        follow(
          open,
          runEffect(effects, options, fn, () => this.controller.signal),
        ),
      plan: (planned) => follow(open, plan(effects, planned)),
      onCommit: (name, sql, values = []) => effects.onCommit(name, sql, values),
      snooze(seconds) {
        throw new Snooze(seconds);
      },
    };
  }

  private call(message: (id: number) => HandlerMessage): Promise<JsonValue> {
    const id = ++this.lastCall;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.send(message(id));
    });
  }
}

async function plan(effects: Recorder["effects"], planned: EffectSpec[]): Promise<void> {
  await effects.plan(toEffectRequests(planned));
}

/** More than the worker keeps of it. */
const LOOSE_BYTES = 65_536;

/** What a handler says is not worth a failed job: what is no JSON is replaced. */
function toLoose(value: unknown): JsonValue {
  return JSON.parse(toLooseJsonText(value, LOOSE_BYTES)) as JsonValue;
}

function toText(message: unknown): string {
  return typeof message === "string" ? message : toLooseJsonText(message, LOOSE_BYTES);
}

async function toContent(content: ArtifactSource): Promise<ArtifactContent> {
  if (content instanceof Uint8Array) return { base64: Buffer.from(content).toString("base64") };
  if (!isStream(content)) return { json: content };
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return { base64: Buffer.concat(chunks).toString("base64") };
}
