import type { EffectRequest } from "../core/effect.js";
import {
  EffectFailed,
  type ErrorCode,
  errorCodes,
  OracleError,
  RetryableError,
  TerminalError,
} from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { retryAfterOf, toStoredError } from "../core/retry.js";
import type { Usage } from "./define.js";
import { Snooze } from "./snooze.js";

// What a handler in another thread or process and its worker say to each other. docs/protocol.md is the same for
// people; names are in snake_case because any language speaks it.

/** What a handler is given: one JSON document (one-shot) or one line (warm). */
export interface RequestEnvelope {
  v: 1;
  job_id: string;
  attempt_id: string;
  attempt_no: number;
  job_type: string;
  tenant_id: string;
  queue: string;
  input: JsonValue;
  idempotency_key: string;
  deadline: string | null;
  trace: null;
}

export interface ErrorEnvelope {
  /** The error's own class name; "Snooze" with retry_after_seconds is a wish to wait, not a failure. */
  class: string;
  message: string;
  retryable: boolean;
  retry_after_seconds?: number;
  traceback?: string;
  /** One of this package's error codes, from handlers that are its own code in another place. */
  code?: ErrorCode;
  field?: string;
}

export type ResponseEnvelope = { attempt_id?: string; usage?: Usage } & (
  | { ok: true; result: JsonValue; metrics?: JsonValue }
  | { ok: false; error: ErrorEnvelope }
);

/** What a handler may say while it runs. A call has an id and is answered by a reply with the same id. */
export type HandlerMessage =
  | { usage: Usage }
  /** The fraction should be a number; the worker takes anything and says what it ignores. */
  | { progress: { fraction: JsonValue; message?: string; details?: JsonValue } }
  | { log: { level: "info" | "warn" | "error"; message: string; fields?: Record<string, JsonValue> } }
  | { artifact: { id: number; name: string; media_type?: string } & ArtifactContent }
  /** Without a value: is it remembered? With one: remember it. */
  | { step: { id: number; name: string; value?: JsonValue } }
  | { effect: { id: number } & (EffectRequest | EffectOutcome) }
  | { plan: { id: number; effects: EffectRequest[] } }
  | { commit: { name: string; sql: string; values: JsonValue[] } };

export type EffectOutcome = { name: string } & (
  | { outcome: "confirmed"; response: JsonValue }
  | { outcome: "failed" | "in_doubt"; error: ErrorEnvelope }
  /** A lookup cannot tell. */
  | { outcome: "unknown" }
);

/** The answer to an effect's announcement. */
export type EffectReply =
  | { next: "send" | "look_up"; idempotency_key: string }
  | { next: "done"; response: JsonValue };

export type ArtifactContent = { json: JsonValue } | { text: string } | { base64: string };

/** What a warm child says of itself, not of an attempt. */
export type BetweenTurns =
  /** It ends of its own accord: it has begun nothing since its last answer. Its requests go to another child. */
  | { leaving: true }
  /** It takes so many requests before it has answered the one it serves. */
  | { ahead: number }
  /** Attempts that it has not begun and will not begin. */
  | { returned: string[] };

/** What a worker says to a handler that runs: an end it asks for, or the answer to a call. */
export type WorkerMessage =
  | { cancel: { attempt_id: string; reason: string } }
  | { reply: number; ok: true; value: JsonValue }
  | { reply: number; ok: false; error: ErrorEnvelope };

/** What a request says of its attempt. */
type Requested = Pick<
  Lease,
  | "jobId"
  | "attemptId"
  | "attemptNo"
  | "type"
  | "tenantId"
  | "queue"
  | "input"
  | "idempotencyKey"
  | "deadline"
>;

export function toRequest(lease: Requested, input = lease.input): RequestEnvelope {
  return {
    v: 1,
    job_id: lease.jobId,
    attempt_id: lease.attemptId,
    attempt_no: lease.attemptNo,
    job_type: lease.type,
    tenant_id: lease.tenantId,
    queue: lease.queue,
    input,
    idempotency_key: lease.idempotencyKey,
    deadline: lease.deadline?.toISOString() ?? null,
    trace: null,
  };
}

/** Tells a handler elsewhere to end. */
export function toCancel({ attemptId }: Lease, reason: unknown): WorkerMessage {
  return { cancel: { attempt_id: attemptId, reason: toStoredError(reason).code } };
}

/** The reason of its signal over there: the same code as in this process. */
export function fromCancel(reason: string): OracleError {
  const code = Object.hasOwn(errorCodes, reason) ? (reason as ErrorCode) : "SHUTDOWN";
  return new OracleError(code, `Told to end: ${errorCodes[code]}.`);
}

/** Whatever was thrown, as it crosses to the other side. */
export function toErrorEnvelope(thrown: unknown): ErrorEnvelope {
  if (thrown instanceof Snooze) {
    return { class: "Snooze", message: "snooze", retryable: true, retry_after_seconds: thrown.seconds };
  }
  const { code, message, retryable, name, field, stack } = toStoredError(thrown);
  const retryAfter = retryAfterOf(thrown);
  return {
    class: name ?? "Error",
    code,
    message,
    retryable,
    ...(field === undefined ? {} : { field }),
    ...(stack === undefined ? {} : { traceback: stack }),
    ...(retryAfter > 0 ? { retry_after_seconds: retryAfter } : {}),
  };
}

/** The other side's error as something to throw here, which leads to the same record. */
export function fromErrorEnvelope(error: ErrorEnvelope): Error {
  // Somebody's own class of that name brings no time.
  if (error.class === "Snooze" && error.retry_after_seconds !== undefined) {
    return new Snooze(error.retry_after_seconds);
  }
  const thrown = toError(error);
  thrown.name = error.class;
  if (error.traceback !== undefined) thrown.stack = error.traceback;
  return thrown;
}

function toError({ code, message, retryable, retry_after_seconds, field }: ErrorEnvelope): Error {
  if (code === "EFFECT_FAILED") {
    const later = retry_after_seconds === undefined ? {} : { retryAfterSeconds: retry_after_seconds };
    return new EffectFailed(message, { retryable, ...later });
  }
  if (code !== undefined && code !== "HANDLER_ERROR" && Object.hasOwn(errorCodes, code)) {
    return new OracleError(code, message, field === undefined ? {} : { field });
  }
  if (!retryable) return new TerminalError(message);
  return new RetryableError(
    message,
    retry_after_seconds === undefined ? {} : { retryAfterSeconds: retry_after_seconds },
  );
}
