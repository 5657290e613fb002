import type { StoredError } from "../core/job.js";
import type { JobState } from "../core/states.js";
import type { Candidate, Objective } from "./population.js";

/** One job of a generation, as far as it is known. */
export interface Member {
  generation: number;
  slot: number;
  island: string;
  jobId: string;
  state: JobState | null;
  /** What it came to, where it succeeded: a commit, and its value where the metric was measured. */
  commit: string | null;
  subject: string | null;
  value: number | null;
  error: StoredError | null;
}

/** What `evolve` tells while it runs; after an interruption the jobs that were done before come first. */
export type EvolveEvent =
  /** The experiment is known; its start is measured, or has been by an earlier run. */
  | { event: "opened"; experiment: string; repositoryId: string; base: string }
  | { event: "started"; start: Candidate; objective: Objective; unit: string | null }
  /** A job is there, runs, or has ended. */
  | { event: "job"; member: Member }
  /** All jobs of a generation have ended; `best` is the best of all so far, or the start. */
  | { event: "generation"; generation: number; best: Candidate };

/** How it ended. */
export interface Evolved {
  experiment: string;
  repositoryId: string;
  objective: Objective;
  unit: string | null;
  start: Candidate;
  /** The start itself where nothing was better. */
  best: Candidate;
  /** Where the best is, unless that is the start. */
  branch: string;
  /** Those that are complete. */
  generations: number;
  jobs: number;
  succeeded: number;
  failed: number;
  stopped: "generations" | "target" | "budget" | "interrupted";
}
