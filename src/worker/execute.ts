import { LeaseLost, OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import type { Lease, Outcome } from "../core/job.js";
import { type JsonLimits, type JsonValue, toJsonText } from "../core/json.js";
import { retryAfterOf, retryDelaySeconds, toStoredError } from "../core/retry.js";
import { secretsIn } from "../core/secrets.js";
import { type JobContext, type JobDefinition, Snooze } from "../handlers/define.js";
import { runEffect, runStep } from "../handlers/effects.js";
import type { Runner } from "../handlers/runner.js";
import { Ledger } from "./ledger.js";
import type { Records } from "./records.js";

/** Why an attempt was told to stop; the reason of its `signal`. */
export type StopReason = "timeout" | "deadline" | "cancel" | "lease-lost" | "shutdown";

/** What a handler finds as its signal's reason. */
function stopError(reason: StopReason, { jobId }: Lease): OracleError {
  switch (reason) {
    case "timeout":
      return new OracleError("TIMEOUT", "The attempt ran longer than its timeout.", { jobId });
    case "deadline":
      return new OracleError("DEADLINE_EXCEEDED", "The job's deadline passed.", { jobId });
    case "cancel":
      return new OracleError("JOB_CANCELLED", "The job was cancelled.", { jobId });
    case "lease-lost":
      return new LeaseLost(jobId, "it ran out or was taken over");
    case "shutdown":
      return new OracleError("SHUTDOWN", "The worker is stopping; the job will run elsewhere.", { jobId });
  }
}

/** One attempt in this process. The controller is made when somebody needs it: most short jobs never do. */
export class Attempt {
  readonly startedAt = performance.now();
  stopReason: StopReason | undefined;
  stoppedAt: number | undefined;
  private controller: AbortController | undefined;

  constructor(
    readonly lease: Lease,
    readonly claimId: string,
    /** When the timeout or the deadline, whichever is first, ends the attempt; by performance.now(). */
    readonly endsAt: number,
  ) {}

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.stopReason && !this.controller.signal.aborted)
      this.controller.abort(stopError(this.stopReason, this.lease));
    return this.controller.signal;
  }

  stop(reason: StopReason): void {
    if (this.stopReason) return;
    this.stopReason = reason;
    this.stoppedAt = performance.now();
    this.controller?.abort(stopError(reason, this.lease));
  }
}

/** What an attempt may reach of the worker around it. */
export interface AttemptServices extends Pick<JobContext<unknown>, "log" | "progress" | "artifact"> {
  records: Records;
}

/** One attempt from its lease to its outcome. Never throws. */
export async function execute(
  attempt: Attempt,
  definition: JobDefinition,
  runner: Runner,
  services: AttemptServices,
  limits: JsonLimits,
): Promise<Outcome> {
  const { lease } = attempt;
  const ledger = new Ledger(lease, definition, services.records, () => attempt.stopReason === "lease-lost");
  try {
    const context = makeContext(attempt, services, ledger);
    const output = await runner.run({ lease, definition, context, recorder: ledger });
    if (ledger.used) await ledger.finish();
    return succeed(output, lease, definition, ledger, limits);
  } catch (thrown) {
    if (ledger.used) await ledger.quiet();
    if (ledger.hold && attempt.stopReason !== "cancel") return { kind: "held", ...ledger.hold };
    return fail(attempt, definition, thrown);
  }
}

function makeContext(attempt: Attempt, services: AttemptServices, ledger: Ledger): JobContext<unknown> {
  const { lease } = attempt;
  return {
    input: lease.input,
    job: {
      id: lease.jobId,
      type: lease.type,
      tenantId: lease.tenantId,
      queue: lease.queue,
      idempotencyKey: lease.idempotencyKey,
      attemptId: lease.attemptId,
      attemptNo: lease.attemptNo,
      deadline: lease.deadline,
    },
    get signal() {
      return attempt.signal;
    },
    get log() {
      return services.log;
    },
    get progress() {
      return services.progress;
    },
    artifact: (...given) => ledger.keep(() => services.artifact(...given)),
    step: (name, fn) => ledger.track(() => runStep(ledger.steps, name, fn)),
    effect: (options, fn) => ledger.track(() => runEffect(ledger.effects, options, fn, () => attempt.signal)),
    plan: (effects) => ledger.track(() => ledger.effects.plan(effects)),
    onCommit: (name, sql, values = []) => ledger.effects.onCommit(name, sql, values),
    snooze(seconds) {
      throw new Snooze(seconds);
    },
  };
}

function succeed(
  output: unknown,
  lease: Lease,
  { version, backoff }: JobDefinition,
  { used, commits }: Ledger,
  limits: JsonLimits,
): Outcome {
  try {
    const resultText = toJsonText(output, limits, "output");
    const hashed = { resultText, contentHash: contentHash(output as JsonValue), handlerVersion: version };
    if (!used) return { kind: "succeeded", ...hashed };
    const delaySeconds = retryDelaySeconds(backoff, lease.attemptNo - lease.interruptions);
    const together = commits.length > 0 ? { commits: { statements: commits, delaySeconds } } : {};
    return { kind: "succeeded", ...hashed, recorded: true, ...together };
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
  const seconds = ((performance.now() - attempt.startedAt) / 1000).toFixed(1);
  return attempt.stopReason === "deadline"
    ? new OracleError("DEADLINE_EXCEEDED", `The deadline passed after ${seconds} s of this attempt.`)
    : new OracleError("TIMEOUT", `The attempt was stopped after ${seconds} s: its timeout.`);
}
