import { type ErrorCode, OracleError, TerminalError } from "./errors.js";
import type { StoredError } from "./job.js";
import { sanitizeText } from "./json.js";
import { redactText } from "./redact.js";

/** How long a failed job waits before its next attempt. */
export interface Backoff {
  kind: "exponential" | "linear" | "fixed";
  baseSeconds: number;
  capSeconds: number;
}

export const defaultBackoff: Backoff = { kind: "exponential", baseSeconds: 5, capSeconds: 3600 };

/**
 * The delay before the next attempt, after `tries` attempts that counted. Exponential delays have full jitter:
 * a crowd that failed together does not come back together. A Retry-After wins when it is longer.
 */
export function retryDelaySeconds(
  backoff: Backoff,
  tries: number,
  retryAfterSeconds = 0,
  random: () => number = Math.random,
): number {
  const { kind, baseSeconds, capSeconds } = backoff;
  const steps = Math.max(0, tries - 1);
  const full =
    kind === "fixed" ? baseSeconds : kind === "linear" ? baseSeconds * (steps + 1) : baseSeconds * 2 ** steps;
  const capped = Math.min(capSeconds, full);
  return Math.max(retryAfterSeconds, kind === "exponential" ? capped * random() : capped);
}

/** Codes for which another attempt would end the same way. */
const terminalCodes = new Set<ErrorCode>([
  "INVALID_ARGUMENT",
  "INPUT_INVALID",
  "OUTPUT_INVALID",
  "OUTPUT_REJECTED",
  "PAYLOAD_REJECTED",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_TOO_DEEP",
  "UNSUPPORTED_JOB_TYPE",
  "STEP_REPEATED",
  "EFFECT_CONFLICT",
  "EFFECT_OPEN",
  "EFFECT_NOT_PLANNED",
  "PLAN_REJECTED",
  "DEADLINE_EXCEEDED",
  "HANDLERS_INVALID",
  "EVOLUTION_UNCHANGED",
]);

/** Codes that speak of the handler's own code: its stack, or the end of its stderr, is worth keeping. */
const tracedCodes = new Set<ErrorCode>(["HANDLER_ERROR", "HANDLER_EXITED"]);

/**
 * Whatever was thrown, as the tables keep it: an unknown exception is retryable, and secrets are hidden, `secrets`
 * among them. Never throws itself.
 */
export function toStoredError(thrown: unknown, secrets: readonly string[] = []): StoredError {
  try {
    return clean(describeError(thrown), secrets);
  } catch {
    // A getter that throws, an object without a prototype: there are errors that cannot even be looked at.
    return { code: "HANDLER_ERROR", message: "threw an error that cannot be read", retryable: true };
  }
}

interface ThrownError {
  code: ErrorCode;
  message: unknown;
  retryable: boolean;
  name?: unknown;
  stack?: unknown;
  field?: string | undefined;
}

function describeError(thrown: unknown): ThrownError {
  if (thrown instanceof OracleError) {
    return {
      code: thrown.code,
      message: thrown.message,
      retryable: thrown.retryable ?? (!(thrown instanceof TerminalError) && !terminalCodes.has(thrown.code)),
      name: thrown.name,
      field: thrown.field,
      stack: tracedCodes.has(thrown.code) ? thrown.stack : undefined,
    };
  }
  if (thrown instanceof Error) {
    return {
      code: "HANDLER_ERROR",
      message: thrown.message || thrown.name,
      retryable: true,
      name: thrown.name,
      stack: thrown.stack,
    };
  }
  return { code: "HANDLER_ERROR", message: describe(thrown), retryable: true };
}

const LONGEST_RETRY_AFTER_SECONDS = 31_536_000;

export function retryAfterOf(thrown: unknown): number {
  const seconds = thrown instanceof OracleError ? (thrown.retryAfterSeconds ?? 0) : 0;
  // Taken from a provider's header as it came: what makes no sense is no wish.
  return seconds > 0 && seconds <= LONGEST_RETRY_AFTER_SECONDS ? seconds : 0;
}

/** Of an error's text: far more than is kept, so that no secret is cut before it is known for one. */
const MOST_LOOKED_AT = 65_536;

/** Error texts come from anywhere; NUL, lone surrogates and megabytes must not stop the failure's record. */
function clean(error: ThrownError, secrets: readonly string[]): StoredError {
  const { code, retryable, name, stack, field } = error;
  const cleaned = (text: string, maxLength?: number) =>
    sanitizeText(redactText(text.slice(0, MOST_LOOKED_AT), secrets), maxLength);
  return {
    code,
    retryable,
    message: cleaned(String(error.message)),
    ...(typeof name === "string" ? { name: cleaned(name, 200) } : {}),
    ...(typeof stack === "string" ? { stack: cleaned(stack) } : {}),
    ...(field === undefined ? {} : { field: cleaned(field, 500) }),
  };
}

function describe(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    return `threw ${JSON.stringify(thrown) ?? String(thrown)}`;
  } catch {
    return "threw a value that cannot be shown as JSON";
  }
}
