import { z } from "zod";
import { OracleError } from "../core/errors.js";
import type { WorkerEventListener } from "../core/events.js";
import type { EvolveEvent } from "./evolve-events.js";
import { mostOf } from "./population.js";
import type { Coder, Evaluator, Planner } from "./roles.js";

const text = (most: number) => z.string().min(1).max(most);
const whole = (most: number) => z.int().min(1).max(most);

const schema = z
  .object({
    repo: text(4096),
    goal: text(512),
    metric: text(200).optional(),
    generations: whole(mostOf.generations).default(5),
    population: whole(mostOf.population).default(4),
    islands: whole(mostOf.islands).optional(),
    base: text(1000).default("HEAD"),
    target: z.number().optional(),
    maxJobs: whole(mostOf.maxJobs).optional(),
    experiment: text(mostOf.name).optional(),
    branch: text(200).default("evolution/best"),
    workspace: text(4096).optional(),
    env: z.array(text(200)).default([]),
  })
  .transform(({ islands, ...rest }) => ({ ...rest, islands: islands ?? Math.min(2, rest.population) }))
  .refine(({ population, islands }) => population >= islands, {
    path: ["population"],
    error: "it is smaller than the number of islands; each needs at least one job in a generation",
  });

interface Parts {
  coder: Coder;
  evaluator: Evaluator;
  planner?: Planner | undefined;
  /** Stops it: running jobs finish first, the others wait for the next run. */
  signal?: AbortSignal | undefined;
  /** Ends running jobs too, at no cost to them. */
  abortSignal?: AbortSignal | undefined;
  onEvent?: ((event: EvolveEvent) => void) | undefined;
  onWorkerEvent?: WorkerEventListener | undefined;
}

/**
 * `repo` and `goal` are needed. Defaults: `metric` the evaluator's first; 5 `generations` of a `population` of 4 jobs over 2
 * `islands`, or 1 for a population of 1; `base` HEAD; `branch` evolution/best; `experiment` a name made of base, goal, metric and evaluator, so that the
 * same call goes on with the same experiment. `workspace` and `env` are those of `defineEvolution`.
 */
export type GivenEvolveOptions = z.input<typeof schema> & Parts;
export type EvolveOptions = z.output<typeof schema> & Parts;

export function checkEvolveOptions(given: GivenEvolveOptions): EvolveOptions {
  const { coder, evaluator, planner, signal, abortSignal, onEvent, onWorkerEvent, ...values } = given;
  for (const [field, role] of Object.entries({ coder, evaluator })) {
    if (!role) throw wrong(field, "is needed");
  }
  const checked = schema.safeParse(values);
  if (checked.success) {
    return { ...checked.data, coder, evaluator, planner, signal, abortSignal, onEvent, onWorkerEvent };
  }
  const { path, message } = checked.error.issues[0] as { path: PropertyKey[]; message: string };
  throw wrong(path.join("."), message);
}

function wrong(field: string, why: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", `evolve: ${field}: ${why}.`, { field });
}
