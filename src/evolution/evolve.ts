import { availableParallelism } from "node:os";
import { OracleError } from "../core/errors.js";
import { createWorker } from "../create-worker.js";
import type { Oracle } from "../oracle.js";
import type { Worker } from "../worker/worker.js";
import { defineEvolution } from "./define.js";
import type { Evolved } from "./evolve-events.js";
import { checkEvolveOptions, type EvolveOptions, type GivenEvolveOptions } from "./evolve-options.js";
import { type Experiment, openExperiment } from "./experiment.js";
import type { Halt } from "./follow.js";
import { Generations } from "./generations.js";
import { defineMeasurement } from "./measure.js";
import { isUsable, vanished } from "./repository.js";
import { measureStart } from "./start.js";

/**
 * Improves a repository by generations of `evolve_commit` jobs, which a worker in this process runs. All it decides by is in
 * the database: the same call again goes on where the last one ended, however that was.
 */
export async function evolve(oracle: Oracle, given: GivenEvolveOptions): Promise<Evolved> {
  const options = checkEvolveOptions(given);
  const experiment = await openExperiment(oracle.db, options);
  const halt: Halt = { stopped: false };
  const worker = await startWorker(oracle, experiment, options, halt);
  const unhook = stopBySignals(worker, options, halt);
  try {
    const { name, repositoryId, base } = experiment;
    options.onEvent?.({ event: "opened", experiment: name, repositoryId, base });
    const start = await measureStart(oracle, experiment, options, halt);
    const { commit, island, value, objective, unit } = start;
    options.onEvent?.({ event: "started", start: { commit, island, value }, objective, unit });
    return await new Generations(oracle, experiment, options, start, halt).run();
  } catch (error) {
    // Whatever failed first: without its repository nothing could have gone well.
    throw (await isUsable(experiment.repository)) ? error : vanished(experiment.repository, error);
  } finally {
    unhook();
    await worker.stop();
  }
}

function startWorker(
  oracle: Oracle,
  experiment: Experiment,
  options: EvolveOptions,
  halt: Halt,
): Promise<Worker> {
  const { coder, evaluator, planner, workspace, env, population, onWorkerEvent } = options;
  const roles = { coder, evaluator, env, ...(planner && { planner }), ...(workspace && { workspace }) };
  // Somebody waits for the generation, and a coder that is asked again may answer better.
  const backoff = { kind: "fixed", baseSeconds: 1 } as const;
  return createWorker(oracle, {
    jobs: [defineEvolution({ ...roles, backoff }), defineMeasurement(roles)],
    queues: [experiment.queue],
    // More at once would disturb what the evaluator measures.
    concurrency: Math.min(population, availableParallelism()),
    onEvent: (event) => {
      onWorkerEvent?.(event);
      if (event.event === "worker.broken") {
        const message = `The renewal thread died (${event.why}); the same call goes on.`;
        halt.fault = new OracleError("WORKER_BROKEN", message);
      }
    },
  });
}

function stopBySignals(worker: Worker, { signal, abortSignal }: EvolveOptions, halt: Halt): () => void {
  const stop = async () => {
    await worker.stop();
    halt.stopped = true;
  };
  const abort = () => worker.abort();
  signal?.addEventListener("abort", stop);
  abortSignal?.addEventListener("abort", abort);
  if (signal?.aborted) void stop();
  return () => {
    signal?.removeEventListener("abort", stop);
    abortSignal?.removeEventListener("abort", abort);
  };
}
