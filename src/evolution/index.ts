export { JobLockConflict, JobPreconditionError } from "../core/errors.js";
export type { CommitCard, Metric } from "../core/evolution.js";
export type { LockedJob } from "../core/job.js";
export { defineEvolution } from "./define.js";
export { EvolutionWorkerError } from "./error.js";
export { evolve } from "./evolve.js";
export type { Evolved, EvolveEvent } from "./evolve-events.js";
export type { GivenEvolveOptions as EvolveOptions } from "./evolve-options.js";
export type { LockedEvolutionJob } from "./job-store.js";
export { EvolutionJobStore } from "./job-store.js";
export type { EvolutionOptions, EvolutionResult } from "./options.js";
export type {
  CodeRequest,
  Coder,
  Coding,
  EvaluateRequest,
  Evaluation,
  Evaluator,
  Plan,
  Planner,
  PlanRequest,
} from "./roles.js";
export type { EvolutionSpec } from "./spec.js";
