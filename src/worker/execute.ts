import { OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import type { Lease, Outcome, Success } from "../core/job.js";
import { type JsonLimits, type JsonValue, toJsonText } from "../core/json.js";
import { retryAfterOf, retryDelaySeconds, toStoredError } from "../core/retry.js";
import { secretsIn } from "../core/secrets.js";
import type { JobDefinition } from "../handlers/define.js";
import type { Runner } from "../handlers/runner.js";
import { Snooze } from "../handlers/snooze.js";
import type { Attempt } from "./attempt.js";
import { AttemptContext, type AttemptServices } from "./context.js";
import { Ledger } from "./ledger.js";

/** One attempt from its lease to its outcome, which comes at once where the handler answers at once. Never throws. */
export function execute(
  attempt: Attempt,
  definition: JobDefinition,
  runner: Runner,
  services: AttemptServices,
  limits: JsonLimits,
): Outcome | Promise<Outcome> {
  const { lease } = attempt;
  const ledger = new Ledger(attempt, definition, services.records);
  let output: unknown;
  try {
    const context = new AttemptContext(attempt, services, ledger);
    output = runner.run({ lease, definition, context, recorder: ledger, clock: attempt });
    if (!(output instanceof Promise) && !ledger.used) {
      ledger.close();
      return succeed(output, lease, definition, ledger, limits);
    }
  } catch (thrown) {
    output = Promise.reject(thrown);
  }
  return conclude(output, attempt, definition, ledger, limits);
}

async function conclude(
  output: unknown,
  attempt: Attempt,
  definition: JobDefinition,
  ledger: Ledger,
  limits: JsonLimits,
): Promise<Outcome> {
  try {
    const value = await output;
    if (ledger.used) await ledger.finish();
    return succeed(value, attempt.lease, definition, ledger, limits);
  } catch (thrown) {
    if (ledger.used) await ledger.quiet();
    if (ledger.hold && attempt.stopReason !== "cancel") return { kind: "held", ...ledger.hold };
    return fail(attempt, definition, thrown);
  } finally {
    ledger.close();
  }
}

function succeed(
  output: unknown,
  lease: Lease,
  { backoff }: JobDefinition,
  { used, commits }: Ledger,
  limits: JsonLimits,
): Outcome {
  try {
    const resultText = toJsonText(output, limits, "output");
    const success: Success = {
      kind: "succeeded",
      resultText,
      contentHash: contentHash(output as JsonValue),
      recorded: used,
    };
    if (commits.length === 0) return success;
    const delaySeconds = retryDelaySeconds(backoff, lease.attemptNo - lease.interruptions);
    return { ...success, commits: { statements: commits, delaySeconds } };
  } catch (error) {
    const { message, field } = error as OracleError;
    throw new OracleError("OUTPUT_REJECTED", message, field === undefined ? {} : { field });
  }
}

/** What follows from a throw. A handler that stopped because it was told to is judged by why it was told. */
export function fail(attempt: Attempt, definition: JobDefinition, thrown: unknown): Outcome {
  const { lease, stopReason } = attempt;
  if (thrown instanceof Snooze) return { kind: "snoozed", delaySeconds: thrown.seconds };
  if (stopReason === "cancel") return { kind: "cancelled" };
  if (stopReason === "shutdown") return { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 };
  const error = toStoredError(
    stopReason === "timeout" || stopReason === "deadline" ? timedOut(attempt) : thrown,
    secretsIn(lease.input),
  );
  if (!error.retryable) return { kind: "terminal", error };
  const tries = lease.attemptNo - lease.interruptions;
  return {
    kind: "retryable",
    error,
    delaySeconds: retryDelaySeconds(definition.backoff, tries, retryAfterOf(thrown)),
  };
}

function timedOut(attempt: Attempt): OracleError {
  const seconds = (attempt.ranMs / 1000).toFixed(1);
  return attempt.stopReason === "deadline"
    ? new OracleError("DEADLINE_EXCEEDED", `The deadline passed after ${seconds} s of this attempt.`)
    : new OracleError("TIMEOUT", `The attempt was stopped after ${seconds} s: its timeout.`);
}
