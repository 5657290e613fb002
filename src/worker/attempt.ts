import { LeaseLost, OracleError } from "../core/errors.js";
import type { Lease } from "../core/job.js";

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
