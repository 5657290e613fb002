import type { Command } from "commander";
import { type EffectState, effectStates, type Resolution, resolutions } from "../core/effect.js";
import { OracleError } from "../core/errors.js";
import { findEffects } from "../store/list-effects.js";
import { checkJobId, requireJob } from "../store/read.js";
import { action, type Call, examples } from "./command.js";
import { effectJson, effectTable } from "./effect-text.js";
import { wrongValue } from "./errors.js";
import { readInput } from "./input.js";
import { jobLine } from "./job-text.js";
import { parseOneOf, parseText, parseWholeNumber } from "./parse.js";

const ID = "5f0c5c1e-7f7e-8d4e-9b1a-0a2b4c6d8e0f";

export function register(program: Command): void {
  const effects = program
    .command("effects")
    .description("look at what jobs did outside, and settle what is in doubt");
  effects
    .command("list")
    .description("effects: those of one job, or those of all jobs; the ones in doubt oldest first")
    .option("--state <state>", "PLANNED, DISPATCHED, CONFIRMED, FAILED or IN_DOUBT", parseEffectState)
    .option("--job <id>", "only this job's")
    .option("--tenant <tenant>", "only this tenant's", parseText("--tenant", 200))
    .option("--limit <n>", "how many; default: 50", parseWholeNumber("--limit", 1, 1000))
    .addHelpText("after", examples("oracle-worker effects list --state IN_DOUBT"))
    .action(action(listCommand));
  effects
    .command("resolve")
    .description("say what became of an effect in doubt; its job goes on when no doubt holds it any more")
    .argument("<effect>", "the effect's id, which is also its idempotency key")
    .requiredOption(
      "--outcome <outcome>",
      "confirmed: it happened; failed: it did not; retry: it did not, send it again",
      parseOneOf("--outcome", resolutions),
    )
    .requiredOption("--evidence <text>", "how you know", parseText("--evidence", 10_000))
    .option("--response <json>", "with confirmed: what the handler gets; JSON, @FILE or -; default: null")
    .addHelpText(
      "after",
      examples(
        `oracle-worker effects resolve ${ID} --outcome confirmed --evidence "charge ch_1 in the dashboard"`,
      ),
    )
    .action(action(resolveCommand));
}

interface ListFlags {
  state?: EffectState;
  job?: string;
  tenant?: string;
  limit?: number;
}

async function listCommand({ flags, out, withOracle }: Call<ListFlags>): Promise<void> {
  const { state, job, tenant: tenantId, limit } = flags;
  if (job !== undefined) checkJobId(job, "--job");
  const items = await withOracle(async (oracle) => {
    if (job === undefined) return findEffects(oracle.db, { state, tenantId, limit });
    const { jobId } = await requireJob(oracle.db, job);
    const all = await oracle.effects(jobId);
    return all.filter((effect) => state === undefined || effect.state === state);
  });
  await out.show({ items: items.map(effectJson), next: null }, () =>
    items.length === 0 ? "No effects." : effectTable(items),
  );
}

interface ResolveFlags {
  outcome: Resolution;
  evidence: string;
  response?: string;
}

async function resolveCommand(call: Call<ResolveFlags>, id: string): Promise<void> {
  const { flags, out, settings, withOracle } = call;
  checkJobId(id, "effect");
  const { outcome, evidence } = flags;
  if (flags.response !== undefined && outcome !== "confirmed") {
    throw new OracleError("INVALID_ARGUMENT", "--response goes with --outcome confirmed only.", {
      field: "--response",
    });
  }
  const response =
    flags.response === undefined ? {} : { response: await readInput(flags.response, settings) };
  await withOracle(async (oracle) => {
    const effect = await oracle.resolveEffect(id, { outcome, evidence, ...response });
    const job = await requireJob(oracle.db, effect.jobId);
    await out.show({ ...effectJson(effect), job_state: job.state, hold_reason: job.holdReason }, () =>
      [
        `Effect ${effect.effectId} ${effect.state}`,
        `${jobLine(job)}${job.holdReason ? `, held: ${job.holdReason}` : ""}`,
      ].join("\n"),
    );
  });
}

function parseEffectState(given: string): EffectState {
  const state = effectStates.find((known) => known === given.toUpperCase());
  if (state) return state;
  throw wrongValue("--state", given, effectStates.join(", "));
}
