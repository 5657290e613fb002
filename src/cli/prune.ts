import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { parseDuration } from "../core/settings.js";
import { FINISHED, type FinishedState, prune } from "../store/prune.js";
import { nameLengths } from "../submit.js";
import { action, type Call, examples } from "./command.js";
import { wrongValue } from "./errors.js";
import { parseText } from "./parse.js";

interface PruneFlags {
  olderThan?: number;
  state?: FinishedState;
  tenant?: string;
  dryRun?: boolean;
}

export function register(program: Command): void {
  program
    .command("prune")
    .description("delete finished jobs, with everything that hangs on them")
    .option("--older-than <duration>", "that finished longer ago than this (RETENTION)", parseAge)
    .option("--state <state>", "only those in this state", parseFinished)
    .option("--tenant <tenant>", "only those of this tenant", parseText("--tenant", nameLengths.tenant))
    .option("--dry-run", "count them and delete nothing")
    .addHelpText(
      "after",
      examples(
        "oracle-worker prune --older-than 30d --dry-run",
        "oracle-worker prune --older-than 7d --state SUCCEEDED --tenant team-a",
      ),
    )
    .action(action<PruneFlags>(pruneCommand));
}

async function pruneCommand({ flags, out, settings, withOracle }: Call<PruneFlags>): Promise<void> {
  const olderThanSeconds = flags.olderThan ?? settings.RETENTION;
  if (olderThanSeconds === undefined) {
    const message = "How old is old enough? Give --older-than, or set RETENTION.";
    throw new OracleError("INVALID_ARGUMENT", message, { field: "--older-than" });
  }
  const { state, tenant, dryRun = false } = flags;
  const { jobs, artifacts } = await withOracle(async (oracle) => {
    const jobs = await prune(oracle.db, {
      olderThanSeconds,
      keyProtectionSeconds: settings.KEY_PROTECTION,
      state,
      tenant,
      dryRun,
    });
    return { jobs, artifacts: dryRun ? 0 : await oracle.collectArtifacts() };
  });
  await out.show({ jobs, artifacts, dry_run: dryRun }, () =>
    dryRun
      ? `${jobs} jobs would be deleted`
      : `${jobs} jobs deleted, and ${artifacts} stored files that none needs`,
  );
}

function parseFinished(given: string): FinishedState {
  const state = FINISHED.find((each) => each === given.toUpperCase());
  if (state !== undefined) return state;
  throw wrongValue("--state", given, `one of ${FINISHED.join(", ")}`);
}

function parseAge(given: string): number {
  const seconds = parseDuration(given);
  if (seconds !== undefined) return seconds;
  throw wrongValue("--older-than", given, "a duration such as 30d, 12h or 90m");
}
