import { EVOLVE_COMMIT } from "../core/evolution.js";
import { defineJob, digest, type JobDefinition } from "../handlers/define.js";
import { checkOptions } from "./check-options.js";
import { evolveCommit } from "./flow.js";
import { type EvolutionOptions, evolutionResult } from "./options.js";
import type { Roles } from "./roles.js";
import { evolutionSpec } from "./spec.js";

/** The job type `evolve_commit`: from a base commit to a better one, with all it did on record. */
export function defineEvolution(
  options: EvolutionOptions,
): JobDefinition<typeof evolutionSpec, typeof evolutionResult> {
  checkOptions(options);
  const { timeoutSeconds, backoff, version = versionOf(options) } = options;
  const definition = defineJob({
    type: EVOLVE_COMMIT,
    input: evolutionSpec,
    output: evolutionResult,
    version,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...(backoff === undefined ? {} : { backoff }),
    run: (context) => evolveCommit(context, options),
  });
  // It needs its worker's own process; what could crash it are its roles, which have processes of their own.
  return Object.freeze({ ...definition, module: undefined });
}

function versionOf({ planner, coder, evaluator }: Roles): string {
  const text = [planner, coder, evaluator].map((role) =>
    typeof role === "function" ? String(role) : JSON.stringify(role ?? null),
  );
  return digest(text.join("\0"));
}
