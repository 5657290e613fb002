import { LeaseLost, OracleError, TerminalError } from "../core/errors.js";
import type { JobLog } from "../core/events.js";
import { contentHash } from "../core/hash.js";
import type { Lease, Outcome } from "../core/job.js";
import { type JsonLimits, type JsonValue, toJsonText } from "../core/json.js";
import { retryAfterOf, retryDelaySeconds, toStoredError } from "../core/retry.js";
import type { JobContext, JobDefinition } from "../handlers/define.js";
import { validate } from "../handlers/validate.js";

/** Why an attempt was told to stop; the reason of its `signal`. */
export type StopReason = "timeout" | "deadline" | "cancel" | "lease-lost" | "shutdown";

const LONGEST_SNOOZE_SECONDS = 315_360_000;

class Snooze extends Error {
  constructor(readonly seconds: number) {
    super("snooze");
    if (!(seconds >= 0 && seconds <= LONGEST_SNOOZE_SECONDS)) {
      throw new TerminalError(`snooze(${seconds}): give seconds from 0 to ${LONGEST_SNOOZE_SECONDS}.`);
    }
  }
}

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

/** The pipeline of one attempt: validate the input, run, validate the output. Never throws. */
export async function execute(
  attempt: Attempt,
  definition: JobDefinition,
  log: JobLog,
  limits: JsonLimits,
): Promise<Outcome> {
  try {
    const input = await validate(definition.input, attempt.lease.input, "INPUT_INVALID");
    const returned = await definition.run(makeContext(attempt, input, log) as JobContext<never>);
    const output = await validate(definition.output, returned, "OUTPUT_INVALID");
    return succeed(output, limits);
  } catch (thrown) {
    return fail(attempt, definition, thrown);
  }
}

function makeContext(attempt: Attempt, input: unknown, log: JobLog): JobContext<unknown> {
  const { lease } = attempt;
  return {
    input,
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
    log,
    snooze(seconds) {
      throw new Snooze(seconds);
    },
  };
}

function succeed(output: unknown, limits: JsonLimits): Outcome {
  try {
    const resultText = toJsonText(output, limits, "output");
    return { kind: "succeeded", resultText, contentHash: contentHash(output as JsonValue) };
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
