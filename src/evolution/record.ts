import { hostname } from "node:os";
import type { Churn, EvolutionRecord } from "../core/evolution.js";
import { version } from "../version.js";
import { cardFiles, cardTexts, mergeMetrics } from "./card.js";
import { branchOf } from "./commit.js";
import type { EvolutionResult } from "./options.js";
import type { Coding, Evaluation, Plan } from "./roles.js";
import type { Kept } from "./run-role.js";
import type { EvolutionSpec } from "./spec.js";

export interface Achieved {
  plan: Plan;
  coding: Coding;
  evaluation: Evaluation;
  commit: string;
  /** The commit's first line. */
  subject: string;
  churn: Churn[];
  kept: Kept[];
}

/** What the job results in. */
export function makeResult(
  jobId: string,
  { base_commit_hash }: EvolutionSpec,
  record: EvolutionRecord,
): EvolutionResult {
  const { commit_hash, subject, plan_summary, evaluation_summary, metrics } = record;
  return {
    commit_hash,
    branch: branchOf(jobId),
    base_commit_hash,
    subject,
    plan_summary,
    evaluation_summary,
    metrics: metrics.map(({ name, value }) => ({ name, value })),
  };
}

/** Card, metrics and references of what a job has achieved. */
export function makeRecord({ plan, coding, evaluation, ...made }: Achieved): EvolutionRecord {
  return {
    ...cardTexts(plan, coding, evaluation),
    ...cardFiles(made.churn),
    commit_hash: made.commit,
    subject: made.subject,
    metrics: mergeMetrics(evaluation.metrics),
    artifacts: made.kept,
    worker: {
      application: "oracle-worker",
      version,
      node: process.version,
      host: hostname(),
      pid: process.pid,
      at: new Date().toISOString(),
    },
  };
}
