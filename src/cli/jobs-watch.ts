import { setTimeout as sleep } from "node:timers/promises";
import { OracleError } from "../core/errors.js";
import type { Attempt, Job, LogLine } from "../core/job.js";
import { isFinished } from "../core/states.js";
import type { Oracle } from "../oracle.js";
import { checkJobId, getJobs } from "../store/read.js";
import type { Call } from "./command.js";
import { refuseUnlessSucceeded, showWhenFinished } from "./finish.js";
import { attemptJson, logJson } from "./job-json.js";
import { attemptLine, jobLine } from "./job-text.js";
import { untilReachable } from "./open.js";
import type { Output } from "./output.js";
import { logLine, progressText } from "./report-text.js";

const LOOK_EVERY_MS = 250;
/** Log lines read at once. */
const PAGE = 1000;
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

interface Look {
  job: Job;
  attempts: Attempt[];
  lines: LogLine[];
}

/** Prints each change until the job ends; nothing comes back when the reader has left. */
async function follow(oracle: Oracle, out: Output, jobId: string): Promise<Job | undefined> {
  const seen = new Map<number, Attempt>();
  let last: LogLine | undefined;
  let state: Job["state"] | undefined;
  while (!out.closed) {
    const { job, attempts, lines } = await untilReachable(TAIL_PATIENCE_MS, () => look(oracle, jobId, last));
    for (const attempt of attempts) {
      // Lines of an attempt that began after the attempts were read wait for the next look.
      const own = lines.filter(({ attemptNo }) => attemptNo === attempt.attemptNo);
      await showAttempt(out, jobId, attempt, seen.get(attempt.attemptNo), own);
      seen.set(attempt.attemptNo, attempt);
      last = own.at(-1) ?? last;
    }
    if (job.state !== state) await showState(out, job);
    state = job.state;
    if (isFinished(state)) return job;
    await sleep(LOOK_EVERY_MS);
  }
  return undefined;
}

/**
 * The job first, then its attempts, then their lines: what is read later is complete as far as what was read before
 * tells, because an attempt's lines are written before its end.
 */
async function look(oracle: Oracle, jobId: string, after: LogLine | undefined): Promise<Look> {
  const [job] = await getJobs(oracle.db, [jobId]);
  if (!job) throw new OracleError("JOB_NOT_FOUND", `There is no job ${jobId}.`, { field: "id", jobId });
  const attempts = await oracle.attempts(jobId);
  const lines: LogLine[] = [];
  for (let page: LogLine[] | undefined; !page || page.length === PAGE; lines.push(...page)) {
    page = await oracle.logs(jobId, { after: lines.at(-1) ?? after, limit: PAGE });
  }
  return { job, attempts, lines };
}

/** What is new about an attempt, in the order in which it happened. */
async function showAttempt(
  out: Output,
  jobId: string,
  attempt: Attempt,
  before: Attempt | undefined,
  lines: LogLine[],
): Promise<void> {
  const { attemptNo, status, progress } = attempt;
  const changed = before?.status !== status;
  const at = attempt.endedAt ?? attempt.startedAt;
  const showStatus = () =>
    out.show({ event: "attempt", at, job_id: jobId, ...attemptJson(attempt) }, () =>
      stamped(at, attemptLine(attempt)),
    );
  if (changed && status === "RUNNING") await showStatus();
  for (const line of lines) {
    await out.show({ event: "log", job_id: jobId, ...logJson(line) }, () => stamped(line.at, logLine(line)));
  }
  if (progress && progress.at.getTime() !== before?.progress?.at.getTime()) {
    await out.show({ event: "progress", job_id: jobId, attempt_no: attemptNo, ...progress }, () =>
      stamped(progress.at, progressText(progress)),
    );
  }
  if (changed && status !== "RUNNING") await showStatus();
}

function showState(out: Output, job: Job): Promise<void> {
  const { jobId, state, updatedAt: at } = job;
  const error = state !== "SUCCEEDED" && job.error ? { error: job.error } : {};
  return out.show({ event: "state", at, job_id: jobId, state, ...error }, () => stamped(at, jobLine(job)));
}

function stamped(at: Date, text: string): string {
  return `${at.toTimeString().slice(0, 8)} ${text}`;
}
