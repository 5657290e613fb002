import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { contentHash, specHash } from "../core/hash.js";
import type { Job, Result } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { checkJobId, requireJob } from "../store/read.js";
import { action, type Call, examples } from "./command.js";
import { jobLine } from "./job-text.js";
import { paint } from "./style.js";

interface Check {
  name: "spec_hash" | "content_hash";
  stored: string;
  computed: string;
  matches: boolean;
}

export function register(program: Command): void {
  program
    .command("verify")
    .description("compute a job's hashes anew from its input and result, and compare")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples("oracle-worker verify 0198c5a0-7b6e-7c3d-9f10-2a4b6c8d0e1f"))
    .action(action(verifyCommand));
}

async function verifyCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  await withOracle(async (oracle) => {
    const job = await requireJob(oracle.db, id);
    const checks = recompute(job, await oracle.result(job.jobId));
    const wrong = checks.filter(({ matches }) => !matches);
    await out.show({ job_id: job.jobId, state: job.state, verified: wrong.length === 0, checks }, () =>
      [jobLine(job), ...checks.map(checkLine), ...(checks.length === 1 ? ["  no result yet"] : [])].join(
        "\n",
      ),
    );
    if (wrong.length === 0) return;
    const names = wrong.map(({ name }) => name).join(" and ");
    const message = `Job ${job.jobId}: ${names} does not match what is stored; the data was changed past oracle-worker.`;
    throw new OracleError("VERIFY_FAILED", message, { field: names, jobId: job.jobId });
  });
}

function recompute(job: Job & { input: JsonValue }, result: Result | undefined): Check[] {
  const { type: jobType, input, handlerVersion } = job;
  const spec = specHash({ jobType, input, ...(handlerVersion === null ? {} : { handlerVersion }) });
  return [
    check("spec_hash", job.specHash, spec),
    ...(result ? [check("content_hash", result.contentHash, contentHash(result.payload))] : []),
  ];
}

function check(name: Check["name"], stored: string, computed: string): Check {
  return { name, stored, computed, matches: stored === computed };
}

function checkLine({ name, stored, computed, matches }: Check): string {
  if (matches) return `  ${paint("ok", "green")}     ${name} ${stored}`;
  return `  ${paint("WRONG", "red")}  ${name} is ${stored}, computed ${computed}`;
}
