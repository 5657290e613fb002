import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import type { Finding } from "../store/doctor/check.js";
import { examine } from "../store/doctor/index.js";
import { action, type Call, examples } from "./command.js";
import { examineRedis } from "./redis.js";
import { type Colour, paint, printable } from "./style.js";

export function register(program: Command): void {
  program
    .command("doctor")
    .description("what is wrong with the installation, or will be")
    .option("--strict", "warnings count as failures")
    .addHelpText("after", examples("oracle-worker doctor", "oracle-worker doctor --strict --json"))
    .action(action<{ strict?: boolean }>(doctorCommand));
}

async function doctorCommand({
  flags,
  out,
  settings,
  withOracle,
}: Call<{ strict?: boolean }>): Promise<void> {
  // Any schema will do: a missing or old one is for the checks to tell.
  const database = await withOracle(
    (oracle) => oracle.withAdmin((admin) => examine({ db: oracle.db, admin, settings })),
    { migrate: false },
  );
  const redis = (await examineRedis(settings)).map((symptom) => ({ check: "Redis", ...symptom }));
  const findings: Finding[] = [...database, ...redis];
  const bad = findings.filter(({ level }) => level === "fail" || (flags.strict && level === "warn"));
  await out.show({ healthy: bad.length === 0, findings }, () => findings.map(line).join("\n"));
  if (bad.length === 0) return;
  const many = bad.length === 1 ? "1 thing" : `${bad.length} things`;
  throw new OracleError(
    "CHECK_FAILED",
    `${many} to mend: ${[...new Set(bad.map(({ check }) => check))].join(", ")}.`,
  );
}

const colours: Record<Finding["level"], Colour> = { ok: "green", warn: "yellow", fail: "red" };

function line({ check, level, message, fix }: Finding): string {
  const head = `${paint(level.padEnd(4), colours[level])}  ${check}: ${printable(message)}`;
  return fix === null ? head : `${head}\n      → ${printable(fix)}`;
}
