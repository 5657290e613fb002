import { setTimeout as sleep } from "node:timers/promises";
import type { OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import { isFinished } from "../core/states.js";
import type { Database } from "../store/database.js";
import { getJobs } from "../store/read.js";

const LOOK_EVERY_MS = 250;

/** Why nothing more will happen here. */
export interface Halt {
  /** The worker was told to stop, and has. */
  stopped: boolean;
  /** The worker cannot go on. */
  fault?: OracleError;
}

/** Looks at jobs until all have ended: true; or until nothing more will happen: false. */
export async function follow(
  db: Database,
  jobIds: string[],
  halt: Halt,
  onLook: (jobs: Job[]) => Promise<void> | void,
): Promise<boolean> {
  for (;;) {
    if (halt.fault) throw halt.fault;
    // Read before the look: what ended while the worker stopped is still seen.
    const last = halt.stopped;
    const jobs = await getJobs(db, jobIds);
    await onLook(jobs);
    if (jobs.every(({ state }) => isFinished(state))) return true;
    if (last) return false;
    await sleep(LOOK_EVERY_MS);
  }
}
