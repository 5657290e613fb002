import type { ErrorCode } from "./errors.js";
import { addTo, type Histogram } from "./histogram.js";

/** What happened in some time. */
export interface Activity {
  succeeded: number;
  /** Attempts that failed, by error code. */
  failed: Record<string, number>;
  /** From due to started, and from started to ended. */
  wait: Histogram;
  run: Histogram;
}

export function noActivity(): Activity {
  return { succeeded: 0, failed: {}, wait: {}, run: {} };
}

export function addActivity(sum: Activity, other: Activity): void {
  sum.succeeded += other.succeeded;
  addTo(sum.failed, other.failed);
  addTo(sum.wait, other.wait);
  addTo(sum.run, other.run);
}

/** Failures that nobody settles: the next attempt finds them on the job. */
export const foundFailures: ReadonlySet<ErrorCode | null> = new Set(["LEASE_EXPIRED", "WORKER_CRASHED"]);
