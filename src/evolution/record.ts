import { hostname } from "node:os";
import type { Churn, EvolutionRecord } from "../core/evolution.js";
import { version } from "../version.js";
import { cardFiles, cardTexts, mergeMetrics } from "./card.js";
import type { Coding, Evaluation, Plan } from "./roles.js";
import type { Kept } from "./run-role.js";

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
