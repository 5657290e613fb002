import { OracleError } from "../core/errors.js";
import { toStoredError } from "../core/retry.js";
import { defineJob, digest, type JobContext, type JobDefinition } from "../handlers/define.js";
import { insideOf } from "../worker/context.js";
import type { EvolutionOptions } from "./options.js";
import { openRepository, requireBase } from "./repository.js";
import { type Evaluation, evaluationSchema } from "./roles.js";
import { RoleRunner } from "./run-role.js";
import { type EvolutionSpec, evolutionSpec } from "./spec.js";
import { evaluate } from "./stages.js";
import { sweep } from "./sweep.js";
import { addWorktree, WORKSPACE } from "./worktree.js";

/** The job type. */
export const MEASURE_COMMIT = "measure_commit";

/** Evaluates the base commit as it is: an `evolve_commit` job without plan, code and commit. */
export function defineMeasurement(
  options: MeasureOptions,
): JobDefinition<typeof evolutionSpec, typeof evaluationSchema> {
  const { evaluator } = options;
  const definition = defineJob({
    type: MEASURE_COMMIT,
    input: evolutionSpec,
    output: evaluationSchema,
    // Somebody waits for it.
    backoff: { kind: "fixed", baseSeconds: 1 },
    version: digest(typeof evaluator === "function" ? String(evaluator) : JSON.stringify(evaluator)),
    run: (context) => measureCommit(context, options),
  });
  // It needs its worker's own process, as evolve_commit does.
  return Object.freeze({ ...definition, module: undefined });
}

type MeasureOptions = Pick<EvolutionOptions, "evaluator" | "workspace" | "env">;

async function measureCommit(
  context: JobContext<EvolutionSpec>,
  { evaluator, workspace = WORKSPACE, env = [] }: MeasureOptions,
): Promise<Evaluation> {
  const { input: spec, job, signal } = context;
  const { db, groups } = insideOf(context);
  const repository = await openRepository(spec, { signal, groups, allowed: undefined });
  await requireBase(repository, spec, job.id);
  await sweep(db, repository, workspace);
  const owner = { jobId: job.id, attemptId: job.attemptId };
  const worktree = await addWorktree(repository, workspace, owner, spec.base_commit_hash);
  try {
    const runner = new RoleRunner(context, worktree.folder, groups, env);
    return (await evaluate(evaluator, { summary: "The start, as it is" }, { spec, runner })).evaluation;
  } catch (error) {
    signal.throwIfAborted();
    throw toFinal(error);
  } finally {
    await worktree.remove().catch((error: Error) => context.log.warn(`${worktree.folder}: ${error.message}`));
  }
}

/** An evaluator that fails here is to be mended first; only what a crash has ended is tried again by itself. */
function toFinal(error: unknown): OracleError {
  const { code, message, field } = toStoredError(error);
  return new OracleError(code, message, {
    retryable: false,
    cause: error,
    ...(field === undefined ? {} : { field }),
  });
}
