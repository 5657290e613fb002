import { OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import type { Oracle } from "../oracle.js";
import { requireJob } from "../store/read.js";
import { findServedTypes } from "../store/workers.js";
import { jobJson } from "./job-json.js";
import { jobLine } from "./job-text.js";
import type { Output } from "./output.js";
import { prettyJson } from "./style.js";

/**
 * Waits for the job's end, without limit unless one is given, and shows it with its result. Every other end
 * is thrown after the job was shown, so that the exit code tells and the id is known.
 */
export async function showWhenFinished(
  oracle: Oracle,
  out: Output,
  jobId: string,
  options: { timeoutSeconds?: number | undefined; extra?: Record<string, unknown> } = {},
): Promise<void> {
  const { timeoutSeconds = Number.POSITIVE_INFINITY, extra } = options;
  const waiting = await requireJob(oracle.db, jobId);
  await noteMissingWorker(oracle, out, waiting);
  const finished = await oracle.wait(waiting.jobId, { timeoutSeconds });
  const job = finished ?? (await requireJob(oracle.db, jobId));
  const result = job.state === "SUCCEEDED" ? await oracle.result(job.jobId) : undefined;
  await out.show({ ...jobJson(job), ...extra, ...(result && { result: result.payload }) }, () =>
    result ? `${jobLine(job)}\n${prettyJson(result.payload)}` : jobLine(job),
  );
  if (!finished) {
    const message = `Job ${jobId} is still ${job.state} after ${timeoutSeconds} s.`;
    throw new OracleError("WAIT_TIMEOUT", message, { jobId });
  }
  refuseUnlessSucceeded(job);
}

/** The error of a job that ended without a result. */
export function refuseUnlessSucceeded(job: Job): void {
  const { jobId, state, error } = job;
  if (state === "CANCELLED") throw new OracleError("JOB_CANCELLED", `Job ${jobId} was cancelled.`, { jobId });
  if (state !== "FAILED_TERMINAL") return;
  const why = error ? `${error.code}: ${error.message}` : "no reason recorded";
  throw new OracleError("JOB_FAILED", `Job ${jobId} failed: ${why}`, { jobId });
}

/** A wait that cannot end is the most likely surprise of a first use. */
async function noteMissingWorker(oracle: Oracle, out: Output, job: Job): Promise<void> {
  if (out.json || job.state !== "PENDING") return;
  if ((await findServedTypes(oracle.db, job.tenantId)).has(job.type)) return;
  out.note(`${jobLine(job)}: no running worker serves ${job.type} yet; \`oracle-worker work\` starts one.`);
}
