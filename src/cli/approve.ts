import type { Command } from "commander";
import { checkJobId } from "../store/read.js";
import { action, type Call, examples } from "./command.js";
import { jobJson } from "./job-json.js";
import { jobLine } from "./job-text.js";
import { parseText } from "./parse.js";

const ID = "0198c5a0-7b6e-7c3d-9f10-2a4b6c8d0e1f";

export function register(program: Command): void {
  program
    .command("approve")
    .description("let a job that awaits approval send what it has planned")
    .argument("<job>", "the job's id")
    .addHelpText("after", examples(`oracle-worker effects list --job ${ID}`, `oracle-worker approve ${ID}`))
    .action(action(approveCommand));
  program
    .command("reject")
    .description("end a job that awaits approval; nothing of its plan is sent")
    .argument("<job>", "the job's id")
    .requiredOption("--why <text>", "the reason, which becomes the job's error", parseText("--why", 2000))
    .addHelpText("after", examples(`oracle-worker reject ${ID} --why "the amount is wrong"`))
    .action(action(rejectCommand));
}

async function approveCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  const job = await withOracle((oracle) => oracle.approve(id));
  await out.show(jobJson(job), () => `${jobLine(job)}, approved`);
}

async function rejectCommand({ flags, out, withOracle }: Call<{ why: string }>, id: string): Promise<void> {
  checkJobId(id);
  const job = await withOracle((oracle) => oracle.reject(id, flags.why));
  await out.show(jobJson(job), () => `${jobLine(job)}, rejected`);
}
