import { z } from "zod";
import type { JobLog } from "../core/events.js";
import type { CommitCard } from "../core/evolution.js";
import type { EvolutionSpec } from "./spec.js";

// Who does the thinking: planner, coder and evaluator, each a function or a program. What they are asked and what they
// answer is the same JSON for both.

/** What a role that is a function may use besides its request. */
export interface RoleContext {
  /** The folder with the job's own checkout. */
  worktree: string;
  /** Aborted when the attempt must end. */
  signal: AbortSignal;
  log: JobLog;
}

/** A program under the one-shot protocol of docs/protocol.md; its `input` is the role's request. */
export interface Executable {
  executable: [string, ...string[]];
}

/** A role's answer, or a promise of it. */
type Answer<T> = T | Promise<T>;

export const planSchema = z.object({
  /** What is going to be tried. */
  summary: z.string().min(1).max(4000),
  details: z.string().max(100_000).optional(),
});
export type Plan = z.output<typeof planSchema>;

export interface PlanRequest {
  spec: EvolutionSpec;
  /** Tracked files, the first thousand. */
  files: string[];
  inspirations: CommitCard[];
}

export type Planner = Executable | ((request: PlanRequest, context: RoleContext) => Answer<Plan>);

export const codingSchema = z
  .object({
    /** What was changed and why; the commit's text. */
    summary: z.string().min(1).max(4000),
    /** Search/replace blocks. */
    edits: z.string().optional(),
    /** A unified diff, with `a/` and `b/` before the paths. */
    diff: z.string().optional(),
    /** The commit's first line. Default: the plan's summary. */
    message: z.string().min(1).max(500).optional(),
  })
  .refine(({ edits, diff }) => edits === undefined || diff === undefined, {
    path: ["diff"],
    error: "edits and diff are both there; give one or the other",
  });
/** With neither edits nor a diff, the coder has changed the files itself. */
export type Coding = z.output<typeof codingSchema>;

export interface CodeRequest extends Omit<PlanRequest, "files"> {
  plan: Plan;
  /** All of it as a text for a model. */
  prompt: string;
}

export type Coder =
  | Executable
  /** Any command-line coding agent: runs in the worktree, reads the prompt from stdin, changes files, exits with 0. */
  | { agent: [string, ...string[]] }
  | ((request: CodeRequest, context: RoleContext) => Answer<Coding>);

const metricSchema = z.object({
  name: z.string().min(1).max(200),
  value: z.number(),
  unit: z.string().max(50).nullish(),
  higher_is_better: z.boolean().default(true),
  details: z.record(z.string(), z.json()).nullish(),
});

export const evaluationSchema = z.object({
  summary: z.string().max(4000),
  metrics: z.array(metricSchema).max(64),
});
export type Evaluation = z.output<typeof evaluationSchema>;
/** What an evaluator may leave out is left out here. */
export type EvaluationInput = z.input<typeof evaluationSchema>;

export interface EvaluateRequest {
  spec: EvolutionSpec;
  plan: Plan;
}

export type Evaluator =
  /** Runs in the worktree; its stdout is, or ends with, one JSON document {summary, metrics}. */
  | { command: [string, ...string[]] }
  | ((request: EvaluateRequest, context: RoleContext) => Answer<EvaluationInput>);

export interface Roles {
  /** Default: the goal is the plan. */
  planner?: Planner;
  coder: Coder;
  evaluator: Evaluator;
}
