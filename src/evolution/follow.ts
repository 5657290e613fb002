import { setTimeout as sleep } from "node:timers/promises";
import { OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import { isFinished } from "../core/states.js";
import type { Database } from "../store/database.js";
import { isTransient } from "../store/database-errors.js";
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
    const open = await look(db, jobIds, onLook);
    if (open?.length === 0) return true;
    if (last) return false;
    if (open?.every(({ holdReason }) => holdReason !== null)) throw held(open[0] as Job);
    await sleep(LOOK_EVERY_MS);
  }
}

/** The jobs that have not ended; undefined while the database does not answer, which the worker outlives too. */
async function look(
  db: Database,
  jobIds: string[],
  onLook: (jobs: Job[]) => Promise<void> | void,
): Promise<Job[] | undefined> {
  try {
    const jobs = await getJobs(db, jobIds);
    await onLook(jobs);
    return jobs.filter(({ state }) => !isFinished(state));
  } catch (error) {
    if (isTransient(error)) return undefined;
    throw error;
  }
}

function held({ jobId, holdReason }: Job): OracleError {
  const message = `Job ${jobId} is held (${holdReason}) and waits for a person; then the same call goes on.`;
  return new OracleError("JOB_PRECONDITION", message, { jobId });
}
