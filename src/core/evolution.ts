import type { JsonValue } from "./json.js";

// What evolution keeps, in the form in which it is stored and in which planners and coders get to see it.

/** The job type. */
export const EVOLVE_COMMIT = "evolve_commit";

/** One measure of a commit. */
export interface Metric {
  name: string;
  value: number;
  unit: string | null;
  higher_is_better: boolean;
  details: { [key: string]: JsonValue } | null;
}

/** How much a file changed. */
export interface Churn {
  path: string;
  added: number;
  deleted: number;
}

/** What is worth knowing about a commit, for whoever chooses what to try next. */
export interface CommitCard {
  job_id: string;
  repository_id: string;
  commit_hash: string;
  parent_commit_hash: string;
  island_id: string | null;
  experiment_id: string | null;
  /** At most 72 characters. */
  subject: string;
  change_summary: string;
  evaluation_summary: string | null;
  key_files: string[];
  /** The files that changed most, the first most of all. */
  highlights: Churn[];
  /** One per name, in the order of the names. */
  metrics: Metric[];
  created_at: string;
}

export const jobArtifactKinds = ["prompt", "plan", "raw_output", "execution_log", "evaluation_log"] as const;
export type JobArtifactKind = (typeof jobArtifactKinds)[number];

/** What a success leaves behind besides its result. What the job is about is in the job itself. */
export interface EvolutionRecord
  extends Pick<
    CommitCard,
    | "commit_hash"
    | "subject"
    | "change_summary"
    | "evaluation_summary"
    | "key_files"
    | "highlights"
    | "metrics"
  > {
  plan_summary: string;
  artifacts: { kind: JobArtifactKind; artifact_id: string }[];
  /** Who made it; the database adds the worker's id. */
  worker: { [key: string]: JsonValue };
}

/** How far whoever chooses parents has taken notice of a card. */
export type IngestionStatus = "PENDING" | "INGESTED" | "FAILED";
