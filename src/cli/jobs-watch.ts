import { setTimeout as sleep } from "node:timers/promises";
import { OracleError } from "../core/errors.js";
import type { Attempt, Job } from "../core/job.js";
import { isFinished } from "../core/states.js";
import type { Oracle } from "../oracle.js";
import { checkJobId, getJobs } from "../store/read.js";
import type { Call } from "./command.js";
import { refuseUnlessSucceeded, showWhenFinished } from "./finish.js";
import { attemptJson } from "./job-json.js";
import { attemptLine, jobLine } from "./job-text.js";
import { untilReachable } from "./open.js";
import type { Output } from "./output.js";

const LOOK_EVERY_MS = 250;
/** A follower outlives a restart of the database. */
const TAIL_PATIENCE_MS = 30_000;

export async function waitCommand(call: Call<{ timeout?: number }>, id: string): Promise<void> {
  checkJobId(id);
  await call.withOracle((oracle) =>
    showWhenFinished(oracle, call.out, id, { timeoutSeconds: call.flags.timeout }),
  );
}

export async function tailCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  const ended = await withOracle((oracle) => follow(oracle, out, id));
  if (ended) refuseUnlessSucceeded(ended);
}

/** Prints each change until the job ends; nothing comes back when the reader has left. */
async function follow(oracle: Oracle, out: Output, jobId: string): Promise<Job | undefined> {
  const seen = new Map<number, Attempt["status"]>();
  let state: Job["state"] | undefined;
  while (!out.closed) {
    const { job, attempts } = await untilReachable(TAIL_PATIENCE_MS, () => look(oracle, jobId));
    for (const attempt of attempts) {
      if (seen.get(attempt.attemptNo) === attempt.status) continue;
      seen.set(attempt.attemptNo, attempt.status);
      await showAttempt(out, job, attempt);
    }
    if (job.state !== state) await showState(out, job);
    state = job.state;
    if (isFinished(state)) return job;
    await sleep(LOOK_EVERY_MS);
  }
  return undefined;
}

/** The job first: when it has ended, the attempts read after it are complete. */
async function look(oracle: Oracle, jobId: string): Promise<{ job: Job; attempts: Attempt[] }> {
  const [job] = await getJobs(oracle.db, [jobId]);
  if (!job) throw new OracleError("JOB_NOT_FOUND", `There is no job ${jobId}.`, { field: "id", jobId });
  return { job, attempts: await oracle.attempts(jobId) };
}

function showAttempt(out: Output, job: Job, attempt: Attempt): Promise<void> {
  const at = attempt.endedAt ?? attempt.startedAt;
  return out.show({ event: "attempt", at, job_id: job.jobId, ...attemptJson(attempt) }, () =>
    stamped(at, attemptLine(attempt)),
  );
}

function showState(out: Output, job: Job): Promise<void> {
  const { jobId, state, updatedAt: at } = job;
  const error = state !== "SUCCEEDED" && job.error ? { error: job.error } : {};
  return out.show({ event: "state", at, job_id: jobId, state, ...error }, () => stamped(at, jobLine(job)));
}

function stamped(at: Date, text: string): string {
  return `${at.toTimeString().slice(0, 8)} ${text}`;
}
