import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Options } from "./types.ts";

const HELP = `npm run bench -- [options]

  --quick                 small sizes, everything in under five minutes
  --only a,b              workloads (default: all): {workloads}
  --contestants a,b       contestants (default: all): {contestants}
  --rounds N              how often each workload runs for each contestant, interleaved
  --jobs N                jobs per run where a workload counts jobs
  --seconds N             length of the workloads that run for a time (snapshot, in-flight)
  --out DIR               where the JSON, the table and the plots go (default: bench/results)

Example: npm run bench -- --only drain,pickup --contestants oracle-worker,pg-boss --rounds 5`;

export class UsageError extends Error {}

export function parseOptions(argv: string[], workloads: string[], contestants: string[]): Options | "help" {
  const { values } = parse(argv);
  if (values.help) {
    console.log(
      HELP.replace("{workloads}", workloads.join(" ")).replace("{contestants}", contestants.join(" ")),
    );
    return "help";
  }
  return {
    quick: values.quick ?? false,
    workloads: pick("only", values.only, workloads),
    contestants: pick("contestants", values.contestants, contestants),
    named: values.contestants !== undefined,
    rounds: count("rounds", values.rounds),
    jobs: count("jobs", values.jobs),
    seconds: count("seconds", values.seconds),
    out: values.out ?? join(dirname(fileURLToPath(import.meta.url)), "..", "results"),
  };
}

function parse(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        help: { type: "boolean", short: "h" },
        quick: { type: "boolean" },
        only: { type: "string" },
        contestants: { type: "string" },
        rounds: { type: "string" },
        jobs: { type: "string" },
        seconds: { type: "string" },
        out: { type: "string" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function pick(flag: string, given: string | undefined, known: string[]): string[] {
  if (given === undefined) return known;
  const asked = given.split(",").map((name) => name.trim());
  const unknown = asked.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new UsageError(`--${flag}: no ${unknown.join(", ")}; there are ${known.join(", ")}`);
  return known.filter((name) => asked.includes(name));
}

function count(flag: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (!Number.isInteger(value) || value < 1)
    throw new UsageError(`--${flag}: ${given} is not a whole number above 0`);
  return value;
}
