import { OracleError } from "../core/errors.js";
import type { JobState } from "../core/states.js";
import { checkJobId, requireJob } from "../store/read.js";
import type { Call } from "./command.js";
import { readInput } from "./input.js";
import { jobJson } from "./job-json.js";
import { jobLine } from "./job-text.js";

export async function cancelCommand({ out, withOracle }: Call<unknown>, id: string): Promise<void> {
  checkJobId(id);
  const job = await withOracle((oracle) => oracle.cancel(id));
  await out.show(jobJson(job), () =>
    job.state === "RUNNING" ? `${jobLine(job)}, its worker is asked to stop it` : jobLine(job),
  );
}

interface RetryFlags {
  all?: boolean;
  state?: JobState;
  tenant?: string;
}

export async function retryCommand(call: Call<RetryFlags>, id: string | undefined): Promise<void> {
  const { flags, out, withOracle } = call;
  if (flags.all) {
    if (id !== undefined) throw wrong("--all", "Give a job's id or --all, not both.");
    const state = flags.state ?? "FAILED_TERMINAL";
    const retried = await withOracle((oracle) => oracle.retryAll(state, flags.tenant));
    return out.show({ retried }, () => `${retried} ${state} jobs are PENDING again`);
  }
  if (id === undefined) throw wrong("id", "Give a job's id, or --all.");
  const alone = (["state", "tenant"] as const).find((name) => flags[name] !== undefined);
  if (alone) throw wrong(`--${alone}`, `--${alone} goes with --all only.`);
  checkJobId(id);
  const job = await withOracle((oracle) => oracle.retry(id));
  await out.show(jobJson(job), () => jobLine(job));
}

export async function replayCommand(
  call: Call<{ input?: string; from?: string }>,
  id: string,
): Promise<void> {
  const { flags, out, settings, withOracle } = call;
  checkJobId(id);
  const { from } = flags;
  if (from !== undefined && flags.input !== undefined)
    throw wrong("--from", "--from reuses steps made of the old input: give --from or --input, not both.");
  const input = flags.input === undefined ? undefined : await readInput(flags.input, settings);
  await withOracle(async (oracle) => {
    const replay = from === undefined ? oracle.replay(id, input) : oracle.replayFrom(id, from);
    const { id: newId, created, joined } = await replay;
    const job = await requireJob(oracle.db, newId);
    await out.show({ ...jobJson(job), created, joined }, () => `${jobLine(job)}, a replay of ${id}`);
  });
}

function wrong(field: string, message: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", message, { field });
}
