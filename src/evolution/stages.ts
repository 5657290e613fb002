import { OracleError } from "../core/errors.js";
import type { CommitCard } from "../core/evolution.js";
import { type Changes, takeChanges } from "./changes.js";
import { applyDiff } from "./diff.js";
import { applyEdits, parseEdits } from "./edits.js";
import { EvolutionWorkerError } from "./error.js";
import type { Git } from "./git.js";
import { lastDocument } from "./last-document.js";
import { makePrompt } from "./prompt.js";
import {
  type Coder,
  type Coding,
  codingSchema,
  type Evaluation,
  type Evaluator,
  evaluationSchema,
  type Plan,
  type Planner,
  planSchema,
} from "./roles.js";
import { type Kept, outputOf, type RoleRunner } from "./run-role.js";
import type { EvolutionSpec } from "./spec.js";

// What the steps of an evolve_commit job do when they run. What they return is remembered.

const MOST_FILES = 1000;

export interface StageParts {
  spec: EvolutionSpec;
  runner: RoleRunner;
  /** In the worktree. */
  git: Git;
  inspirations: CommitCard[];
}

export async function plan(
  planner: Planner | undefined,
  { spec, runner, git, inspirations }: StageParts,
): Promise<{ plan: Plan; kept: Kept[] }> {
  if (planner === undefined) return { plan: { summary: spec.goal }, kept: [] };
  const files = (await git.list(["ls-files", "-z"])).slice(0, MOST_FILES);
  const request = { spec, files, inspirations };
  const plan =
    typeof planner === "function"
      ? await runner.check("planner", planSchema, await planner(request, runner.roleContext))
      : (await runner.runExecutable("planner", planner.executable, planSchema, request)).answer;
  return { plan, kept: await runner.keep("plan", "plan.json", JSON.stringify(plan, null, 2)) };
}

export interface Coded {
  /** Without the changes themselves, which are in the patch. */
  coding: Pick<Coding, "summary" | "message">;
  changes: Changes;
  /** When it was done, in seconds since 1970: the commit's date. */
  at: number;
  kept: Kept[];
}

export async function code(coder: Coder, plan: Plan, parts: StageParts): Promise<Coded> {
  const { spec, runner, git, inspirations } = parts;
  const prompt = makePrompt(spec, plan, inspirations, isAgent(coder));
  const kept = await runner.keep("prompt", "prompt.md", prompt);
  const { coding, ...said } = await askCoder(coder, runner, { spec, plan, prompt, inspirations });
  kept.push(...said.kept);
  if (coding.edits !== undefined) await applyEdits(git.folder, parseEdits(coding.edits));
  if (coding.diff !== undefined) await applyDiff(git, coding.diff);
  const changes = await takeChanges(git, spec.base_commit_hash);
  const { summary, message } = coding;
  const at = Math.floor(Date.now() / 1000);
  return { coding: { summary, ...(message === undefined ? {} : { message }) }, changes, at, kept };
}

async function askCoder(
  coder: Coder,
  runner: RoleRunner,
  request: { spec: EvolutionSpec; plan: Plan; prompt: string; inspirations: CommitCard[] },
): Promise<{ coding: Coding; kept: Kept[] }> {
  if (isAgent(coder)) return runAgent(coder.agent, runner, request);
  if (typeof coder === "function") {
    const coding = await runner.check("coder", codingSchema, await coder(request, runner.roleContext));
    return { coding, kept: await keepAnswer(runner, coding) };
  }
  const { answer, log } = await runner.runExecutable("coder", coder.executable, codingSchema, request);
  const logged: Kept[] = log === undefined ? [] : [{ kind: "execution_log", artifact_id: log }];
  return { coding: answer, kept: [...(await keepAnswer(runner, answer)), ...logged] };
}

function isAgent(coder: Coder): coder is Extract<Coder, { agent: unknown }> {
  return typeof coder !== "function" && "agent" in coder;
}

function keepAnswer(runner: RoleRunner, coding: Coding): Promise<Kept[]> {
  return runner.keep("raw_output", "coding.json", JSON.stringify(coding, null, 2));
}

async function runAgent(
  command: [string, ...string[]],
  runner: RoleRunner,
  { plan, prompt }: { plan: Plan; prompt: string },
): Promise<{ coding: Coding; kept: Kept[] }> {
  const end = await runner.runProgram(command, prompt);
  const kept = [
    ...(await runner.keep("raw_output", "agent.txt", end.stdout.toString("utf8"))),
    ...(await runner.keep("execution_log", "coder.log", end.stderr.toString("utf8"))),
  ];
  if (!end.succeeded) throw new OracleError("HANDLER_EXITED", `The agent ${command[0]} ${end.how}.`);
  return { coding: { summary: plan.summary }, kept };
}

export async function evaluate(
  evaluator: Evaluator,
  plan: Plan,
  { spec, runner }: Pick<StageParts, "spec" | "runner">,
): Promise<{ evaluation: Evaluation; kept: Kept[] }> {
  if (typeof evaluator === "function") {
    const answer = await evaluator({ spec, plan }, runner.roleContext);
    const evaluation = await runner.check("evaluator", evaluationSchema, answer);
    const text = JSON.stringify(evaluation, null, 2);
    return { evaluation, kept: await runner.keep("evaluation_log", "evaluation.log", text) };
  }
  const { command } = evaluator;
  const end = await runner.runProgram(command);
  const kept = await runner.keep("evaluation_log", "evaluation.log", outputOf(end));
  if (!end.succeeded) throw useless(`${command[0]} ${end.how}${lastLine(end.stderr)}`, end.exitCode === null);
  const found = lastDocument(end.stdout.toString("utf8"));
  if (found === undefined)
    throw useless(`${command[0]} wrote no JSON document {"summary", "metrics"} at the end of its stdout`);
  if ("wrong" in found) throw useless(found.wrong);
  return { evaluation: await runner.check("evaluator", evaluationSchema, found.value), kept };
}

function lastLine(stderr: Buffer): string {
  const line = stderr.toString("utf8").trim().split("\n").at(-1);
  return line ? `: ${line.slice(0, 300)}` : "";
}

/** What was coded is remembered: an evaluator that has judged it would say the same again. */
function useless(why: string, retryable = false): EvolutionWorkerError {
  return new EvolutionWorkerError("EVOLUTION_EVALUATION", `The evaluator measured nothing: ${why}.`, {
    field: "evaluator",
    retryable,
  });
}
