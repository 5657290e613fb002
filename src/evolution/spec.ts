import { z } from "zod";

const texts = (most: number, longest: number) =>
  z.array(z.string().min(1).max(longest)).max(most).default([]);
const name = z.string().min(1).max(200);

/** Of a commit, by SHA-1 or SHA-256. */
export const commitHash = z
  .string()
  .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, "must be a full commit hash: 40 or 64 lower-case hex digits");

/** What a job of type `evolve_commit` is given. */
export const evolutionSpec = z.strictObject({
  /** What cards and metrics are filed under; the same for every clone of a repository. */
  repository_id: name,
  /** Where it is: a path of a git repository that the worker can reach. */
  repository: z.string().min(1).max(4096),
  base_commit_hash: commitHash,
  island_id: name.optional(),
  experiment_id: name.optional(),
  inspiration_commit_hashes: z.array(commitHash).max(10).default([]),
  goal: z.string().min(1).max(512),
  constraints: texts(20, 200),
  acceptance_criteria: texts(20, 200),
  notes: texts(20, 200),
  tags: texts(20, 64),
  iteration_hint: z.string().max(200).optional(),
});

export type EvolutionSpec = z.output<typeof evolutionSpec>;
