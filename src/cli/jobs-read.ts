import { JobPreconditionError } from "../core/errors.js";
import type { JobState } from "../core/states.js";
import { artifactJson } from "../http/to-json.js";
import { checkJobId, requireJob } from "../store/read.js";
import type { Call } from "./command.js";
import { effectJson, stepJson } from "./effect-text.js";
import { attemptJson, jobJson, logJson } from "./job-json.js";
import { jobBlock, jobTable } from "./job-text.js";
import { artifactTable, logTable } from "./report-text.js";
import { prettyJson, titled } from "./style.js";

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

/** What `show` prints of a log; `tail` has all of it. */
const LAST_LINES = 20;

export async function showCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  await withOracle(async (oracle) => {
    const job = await requireJob(oracle.db, id);
    const [attempts, steps, effects, logs, artifacts, result] = await Promise.all([
      oracle.attempts(job.jobId),
      oracle.steps(job.jobId),
      oracle.effects(job.jobId),
      oracle.logs(job.jobId, { last: true, limit: LAST_LINES }),
      oracle.artifacts(job.jobId),
      oracle.result(job.jobId),
    ]);
    const document = {
      ...jobJson(job),
      input: job.input,
      attempts: attempts.map(attemptJson),
      steps: steps.map(stepJson),
      effects: effects.map(effectJson),
      logs: logs.map(logJson),
      artifacts: artifacts.map(artifactJson),
      result_hash: result?.contentHash ?? null,
      provenance_hash: result?.provenanceHash ?? null,
    };
    await out.show(document, () =>
      [
        jobBlock(job, { attempts, steps, effects, result }),
        ...(logs.length > 0 ? [titled("Last log lines", logTable(logs))] : []),
        ...(artifacts.length > 0 ? [titled("Artifacts", artifactTable(artifacts))] : []),
      ].join("\n"),
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
