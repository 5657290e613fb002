import { type ErrorCode, OracleError, RetryableError, TerminalError } from "./errors.js";
import type { StoredError } from "./job.js";
import { sanitizeText } from "./json.js";

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
  "INPUT_INVALID",
  "OUTPUT_INVALID",
  "OUTPUT_REJECTED",
  "PAYLOAD_REJECTED",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_TOO_DEEP",
  "UNSUPPORTED_JOB_TYPE",
  "DEADLINE_EXCEEDED",
]);

/** Whatever was thrown, as the tables keep it: an unknown exception is retryable. Never throws itself. */
export function toStoredError(thrown: unknown): StoredError {
  try {
    return describeError(thrown);
  } catch {
    // A getter that throws, an object without a prototype: there are errors that cannot even be looked at.
    return { code: "HANDLER_ERROR", message: "threw an error that cannot be read", retryable: true };
  }
}

function describeError(thrown: unknown): StoredError {
  if (thrown instanceof OracleError) {
    return clean({
      code: thrown.code,
      message: thrown.message,
      retryable: !(thrown instanceof TerminalError) && !terminalCodes.has(thrown.code),
      name: thrown.name,
      field: thrown.field,
      stack: thrown.code === "HANDLER_ERROR" ? thrown.stack : undefined,
    });
  }
  if (thrown instanceof Error) {
    return clean({
      code: "HANDLER_ERROR",
      message: thrown.message || thrown.name,
      retryable: true,
      name: thrown.name,
      stack: thrown.stack,
    });
  }
  return clean({ code: "HANDLER_ERROR", message: describe(thrown), retryable: true });
}

const LONGEST_RETRY_AFTER_SECONDS = 31_536_000;

export function retryAfterOf(thrown: unknown): number {
  const seconds = thrown instanceof RetryableError ? (thrown.retryAfterSeconds ?? 0) : 0;
  // Taken from a provider's header as it came: what makes no sense is no wish.
  return seconds > 0 && seconds <= LONGEST_RETRY_AFTER_SECONDS ? seconds : 0;
}

/** Error texts come from anywhere; NUL, lone surrogates and megabytes must not stop the failure's record. */
function clean(error: {
  code: ErrorCode;
  message: unknown;
  retryable: boolean;
  name?: unknown;
  stack?: unknown;
  field?: string | undefined;
}): StoredError {
  const { code, retryable, field } = error;
  return {
    code,
    retryable,
    message: sanitizeText(String(error.message)),
    ...(typeof error.name === "string" ? { name: sanitizeText(error.name, 200) } : {}),
    ...(typeof error.stack === "string" ? { stack: sanitizeText(error.stack) } : {}),
    ...(field === undefined ? {} : { field: sanitizeText(field, 500) }),
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
