import type { Command } from "commander";
import { mostOf } from "../evolution/population.js";
import { action, type Call, examples } from "./command.js";
import { wrongValue } from "./errors.js";
import type { EvolveFlags } from "./evolve-run.js";
import { parseText, parseWholeNumber } from "./parse.js";
import { parseWords } from "./words.js";

export function register(program: Command): void {
  const whole = (flag: string, most: number) => parseWholeNumber(flag, 1, most);
  program
    .command("evolve")
    .description("improve a git repository by generations of jobs that plan, code, evaluate and commit")
    .requiredOption("--repo <folder>", "the git repository")
    .requiredOption("--goal <text>", "what is to become better", parseText("--goal", 512))
    .requiredOption("--evaluate <command>", "measures a commit: prints metrics", parseWords("--evaluate"))
    .option("--coder <command>", "changes the code, by the process protocol", parseWords("--coder"))
    .option("--agent <command>", "or: reads a prompt and edits the files", parseWords("--agent"))
    .option("--planner <command>", "says what to try; default: the goal", parseWords("--planner"))
    .option("--metric <name>", "to improve; default: the evaluator's first", parseText("--metric", 200))
    .option("--generations <n>", "how many", whole("--generations", mostOf.generations), 5)
    .option("--population <n>", "jobs in a generation", whole("--population", mostOf.population), 4)
    .option(
      "--islands <n>",
      "populations that grow apart; default: 2, or 1 of 1 job",
      whole("--islands", mostOf.islands),
    )
    .option("--base <rev>", "where to start", parseText("--base", 1000), "HEAD")
    .option("--target <value>", "stop once the metric is there", parseNumber("--target"))
    .option("--max-jobs <n>", "the budget: stop after so many jobs", whole("--max-jobs", mostOf.maxJobs))
    .option(
      "--experiment <name>",
      "default: made of base, goal, metric and evaluator",
      parseText("--experiment", mostOf.name),
    )
    .option("--branch <name>", "where the best commit is", parseText("--branch", 200), "evolution/best")
    .option("--env <names>", "variables that the commands may see, separated by commas", parseNames)
    .addHelpText(
      "after",
      `
Commands are split into words, without a shell, and run in a checkout of their own: name files outside of it in full.
Ctrl-C lets running jobs finish (again: hands them back); the same command goes on with the same experiment.
Exit codes besides the usual: 1 when every job failed, 130 when it was interrupted.
${examples(
  `oracle-worker evolve --repo . --goal 'Make parse() faster' --agent 'my-agent --edit' --evaluate 'node /opt/measure.mjs'`,
)}`,
    )
    .action(action<EvolveFlags>(evolveCommand));
}

/** Loaded only when needed: it brings a whole worker. */
async function evolveCommand(call: Call<EvolveFlags>): Promise<void> {
  const { runEvolve } = await import("./evolve-run.js");
  await runEvolve(call);
}

function parseNames(given: string): string[] {
  const names = given.split(",").map((name) => name.trim());
  if (names.every((name) => /^\w+$/.test(name))) return names;
  throw wrongValue("--env", given, "names of environment variables, separated by commas");
}

function parseNumber(flag: string): (given: string) => number {
  return (given) => {
    const number = given.trim() === "" ? Number.NaN : Number(given);
    if (Number.isFinite(number)) return number;
    throw wrongValue(flag, given, "a number");
  };
}
