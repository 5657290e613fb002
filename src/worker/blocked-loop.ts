import { OracleError } from "../core/errors.js";
import type { Outcome } from "../core/job.js";
import { toStoredError } from "../core/retry.js";
import type { LoopClock } from "./loop-clock.js";

/** How often the renewal thread looks at the pulse of the event loop, which beats every quarter of a second. */
export const LOOK_MS = 500;
/** Looks at an unmoved pulse, not time: a process that was stopped as a whole must not count as blocked. */
const BLOCKED_LOOKS = 4;

/** Tells from the renewal thread whether the event loop is blocked. */
export class BlockedLoop {
  private lastPulse = 0;
  private unmoved = 0;

  constructor(private readonly clock: LoopClock) {}

  look(): boolean {
    const { pulse } = this.clock;
    this.unmoved = pulse === this.lastPulse ? this.unmoved + 1 : 0;
    this.lastPulse = pulse;
    return this.unmoved >= BLOCKED_LOOKS;
  }
}

/** How an attempt ends whose time is up while the loop, which would have ended it, is blocked. */
export function timedOutFromOutside(retryDelaySeconds: number | undefined): Outcome {
  const where = "while a handler blocked the event loop";
  if (retryDelaySeconds === undefined) {
    const error = toStoredError(new OracleError("DEADLINE_EXCEEDED", `The job's deadline passed ${where}.`));
    return { kind: "terminal", error };
  }
  const error = toStoredError(new OracleError("TIMEOUT", `The attempt's timeout passed ${where}.`));
  return { kind: "retryable", error, delaySeconds: retryDelaySeconds };
}
