import { JobPreconditionError } from "../core/errors.js";
import type { JobState } from "../core/states.js";
import { checkJobId, requireJob } from "../store/read.js";
import type { Call } from "./command.js";
import { attemptJson, jobJson } from "./job-json.js";
import { jobBlock, jobTable } from "./job-text.js";
import { prettyJson } from "./style.js";

interface ListFlags {
  state?: JobState;
  type?: string;
  queue?: string;
  tenant?: string;
  specHash?: string;
  limit?: number;
  after?: string;
}

export async function listCommand({ flags, out, withOracle }: Call<ListFlags>): Promise<void> {
  const { state, type, queue, tenant, specHash, limit, after } = flags;
  if (after !== undefined) checkJobId(after, "--after");
  const { items, next } = await withOracle((oracle) =>
    oracle.list({ state, type, queue, tenantId: tenant, specHash, limit, after }),
  );
  await out.show({ items: items.map(jobJson), next }, () => {
    if (items.length === 0) return "No jobs.";
    return next === null ? jobTable(items) : `${jobTable(items)}\nMore: --after ${next}`;
  });
}

export async function showCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  await withOracle(async (oracle) => {
    const job = await requireJob(oracle.db, id);
    const attempts = await oracle.attempts(job.jobId);
    const hash = (await oracle.result(job.jobId))?.contentHash ?? null;
    await out.show(
      { ...jobJson(job), input: job.input, attempts: attempts.map(attemptJson), result_hash: hash },
      () => jobBlock(job, attempts, hash),
    );
  });
}

export async function resultCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  await withOracle(async (oracle) => {
    const result = await oracle.result(id);
    if (result) return out.show(result.payload, () => prettyJson(result.payload));
    const { jobId, state } = await requireJob(oracle.db, id);
    throw new JobPreconditionError(jobId, `is ${state}: only a SUCCEEDED job has a result`);
  });
}
