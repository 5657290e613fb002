import { z } from "zod";
import type { Backoff } from "../core/retry.js";
import type { Roles } from "./roles.js";
import { commitHash } from "./spec.js";

export interface EvolutionOptions extends Roles {
  /** Where worktrees are made, one for each attempt. Default `.oracle-worker/worktrees`. */
  workspace?: string;
  /** Folders in which repositories may lie: jobs name their paths. Default: anywhere. */
  repositories?: string[];
  /** A remote's name or address to which each commit's branch is pushed. Default: none. */
  push?: string;
  /** Of the commits. */
  author?: { name: string; email: string };
  /** Names of environment variables that programs of roles may see, besides PATH, HOME, LANG, LC_ALL, TZ and TMPDIR. */
  env?: string[];
  /** How long one attempt may take. Default 3600. */
  timeoutSeconds?: number;
  backoff?: Partial<Backoff>;
  /** Default: a digest of the roles. */
  version?: string;
}

/** What a job of type `evolve_commit` results in. */
export const evolutionResult = z.object({
  commit_hash: commitHash,
  branch: z.string(),
  base_commit_hash: commitHash,
  subject: z.string(),
  plan_summary: z.string(),
  evaluation_summary: z.string().nullable(),
  metrics: z.array(z.object({ name: z.string(), value: z.number() })),
});
export type EvolutionResult = z.output<typeof evolutionResult>;
