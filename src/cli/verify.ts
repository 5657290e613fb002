import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { checkJobId } from "../store/read.js";
import { type Check, verifyJob } from "../verify.js";
import { action, type Call, examples } from "./command.js";
import { jobLine } from "./job-text.js";
import { paint, printable } from "./style.js";

export function register(program: Command): void {
  program
    .command("verify")
    .description("compute a job's hashes anew from its input, steps, effects and result, and compare")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples("oracle-worker verify 0198c5a0-7b6e-7c3d-9f10-2a4b6c8d0e1f"))
    .action(action(verifyCommand));
}

async function verifyCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  await withOracle(async (oracle) => {
    const { job, checks } = await verifyJob(oracle, id.toLowerCase());
    const wrong = checks.filter(({ matches }) => !matches);
    const hasResult = checks.some(({ name }) => name === "content_hash");
    await out.show({ job_id: job.jobId, state: job.state, verified: wrong.length === 0, checks }, () =>
      [jobLine(job), ...checks.map(checkLine), ...(hasResult ? [] : ["  no result yet"])].join("\n"),
    );
    if (wrong.length === 0) return;
    const names = wrong.map(({ name }) => name).join(" and ");
    const message = `Job ${job.jobId}: ${names} does not match what is stored; the data was changed past oracle-worker.`;
    throw new OracleError("VERIFY_FAILED", message, { field: names, jobId: job.jobId });
  });
}

function checkLine({ name, stored, computed, matches }: Check): string {
  if (matches) return `  ${paint("ok", "green")}     ${printable(name)} ${stored}`;
  return `  ${paint("WRONG", "red")}  ${printable(name)} is ${stored}, computed ${computed}`;
}
