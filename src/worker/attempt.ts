import { LeaseLost, OracleError } from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { Clock } from "../handlers/runner.js";

/** Why an attempt was told to stop; the reason of its `signal`. */
export type StopReason = "timeout" | "deadline" | "cancel" | "lease-lost" | "shutdown";

/** What a handler finds as its signal's reason. */
function toStopError(reason: StopReason, { jobId }: Lease): OracleError {
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
export class Attempt implements Clock {
  readonly startedAt = performance.now();
  stopReason: StopReason | undefined;
  stoppedAt: number | undefined;
  /** Told when `endsAt` has changed. */
  onClock: ((attempt: Attempt) => void) | undefined;
  onStop: (() => void) | undefined;
  /** When the job's deadline ends it, by performance.now(). */
  private readonly deadlineAt: number;
  private timeoutAt: number;
  private waitedMs = 0;
  private controller: AbortController | undefined;
  private toldWith: OracleError | undefined;

  constructor(
    readonly lease: Lease,
    readonly claimId: string,
    /** Of its lease, with the keeper. */
    readonly slot: number,
    timeoutMs: number,
  ) {
    this.timeoutAt = this.startedAt + timeoutMs;
    this.deadlineAt = this.startedAt + (lease.deadlineInSeconds ?? Number.POSITIVE_INFINITY) * 1000;
  }

  /** When the timeout or the deadline, whichever is first, ends the attempt; by performance.now(). */
  get endsAt(): number {
    return Math.min(this.timeoutAt, this.deadlineAt);
  }

  get endsByDeadline(): boolean {
    return this.deadlineAt < this.timeoutAt;
  }

  /** How long it has run, without the time it waited for a place. */
  get ranMs(): number {
    return performance.now() - this.startedAt - this.waitedMs;
  }

  async waitFor<T>(place: Promise<T>): Promise<T> {
    const since = performance.now();
    const { timeoutAt } = this;
    this.timeOutAt(Number.POSITIVE_INFINITY);
    try {
      return await place;
    } finally {
      const waitedMs = performance.now() - since;
      this.waitedMs += waitedMs;
      this.timeOutAt(timeoutAt + waitedMs);
    }
  }

  private timeOutAt(timeoutAt: number): void {
    this.timeoutAt = timeoutAt;
    this.onClock?.(this);
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.stopReason && !this.controller.signal.aborted) this.controller.abort(this.stopError);
    return this.controller.signal;
  }

  get stopError(): OracleError | undefined {
    if (this.stopReason) this.toldWith ??= toStopError(this.stopReason, this.lease);
    return this.toldWith;
  }

  stop(reason: StopReason): void {
    if (this.stopReason) return;
    this.stopReason = reason;
    this.stoppedAt = performance.now();
    this.controller?.abort(this.stopError);
    this.onStop?.();
  }
}
