import type { z } from "zod";
import { IdempotencyConflict, OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import type { Oracle } from "../oracle.js";
import { EvolutionWorkerError } from "./error.js";
import type { EvolveOptions } from "./evolve-options.js";
import type { Experiment } from "./experiment.js";
import { follow, type Halt } from "./follow.js";
import { MEASURE_COMMIT } from "./measure.js";
import type { Candidate, Objective } from "./population.js";
import type { Evaluation } from "./roles.js";
import type { evolutionSpec } from "./spec.js";

/** The base commit, measured: what "better" is judged by. */
export interface Start extends Candidate {
  objective: Objective;
  unit: string | null;
}

/** Has the start measured by a job, once for each experiment, so that its value is on record too. */
export async function measureStart(
  oracle: Oracle,
  experiment: Experiment,
  options: EvolveOptions,
  halt: Halt,
): Promise<Start> {
  const jobId = await submit(oracle, experiment, options);
  let job: Job | undefined;
  const ended = await follow(oracle.db, [jobId], halt, (jobs) => {
    job = jobs[0];
  });
  if (!ended)
    throw new OracleError("SHUTDOWN", "Stopped before the start was measured; the same call goes on.");
  if (job?.state !== "SUCCEEDED") throw notMeasured(experiment.base, jobId, job);
  const evaluation = (await oracle.result(jobId))?.payload as unknown as Evaluation;
  return toStart(experiment.base, evaluation, options.metric);
}

async function submit(oracle: Oracle, experiment: Experiment, options: EvolveOptions): Promise<string> {
  const { repository, repositoryId, name, base, queue, startKey: key } = experiment;
  const input: z.input<typeof evolutionSpec> = {
    repository_id: repositoryId,
    repository: repository.git.folder,
    base_commit_hash: base,
    experiment_id: name,
    goal: options.goal,
  };
  try {
    // The tries are for crashes: an evaluator that fails is to be mended, and the next run tries again.
    const { id, created } = await oracle.enqueue(MEASURE_COMMIT, input, { queue, key, maxAttempts: 10 });
    const state = created ? undefined : (await oracle.get(id))?.state;
    if (state === "FAILED_TERMINAL" || state === "CANCELLED") await oracle.retry(id);
    return id;
  } catch (error) {
    if (!(error instanceof IdempotencyConflict)) throw error;
    const message = `experiment ${JSON.stringify(name)} was begun from another commit or with another goal; give it another name.`;
    throw new OracleError(error.code, message, { field: "experiment", cause: error });
  }
}

function toStart(commit: string, { metrics }: Evaluation, wanted: string | undefined): Start {
  const names = [...new Set(metrics.map(({ name }) => name))];
  const metric = wanted ?? names[0];
  // Of a name that comes twice the later value counts, as on a card.
  const measured = metrics.findLast(({ name }) => name === metric);
  if (metric === undefined) {
    throw new EvolutionWorkerError(
      "EVOLUTION_EVALUATION",
      "The evaluator measured nothing: its metrics are empty.",
    );
  }
  if (!measured) {
    const message = `metric is ${JSON.stringify(metric)}; it must be one that the evaluator measures: ${names.join(", ")}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "metric" });
  }
  const { value, unit, higher_is_better: higherIsBetter } = measured;
  return { commit, island: null, value, objective: { metric, higherIsBetter }, unit: unit ?? null };
}

function notMeasured(base: string, jobId: string, job: Job | undefined): OracleError {
  const why = job?.error ? `${job.error.code}: ${job.error.message}` : (job?.state ?? "its job is gone");
  const message = `The evaluator must succeed at the start, ${base.slice(0, 12)}, before anything can be better: ${why}`;
  return new OracleError("JOB_FAILED", message, { jobId });
}
