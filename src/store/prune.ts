import { type Database, statement } from "./database.js";

export const FINISHED = ["SUCCEEDED", "FAILED_TERMINAL", "CANCELLED"] as const;
export type FinishedState = (typeof FINISHED)[number];

export interface PruneOptions {
  olderThanSeconds: number;
  keyProtectionSeconds: number;
  state?: FinishedState | undefined;
  tenant?: string | undefined;
  /** Only count. */
  dryRun?: boolean | undefined;
}

const pruneJobs = statement<{ deleted: number; next_after: string | null }>(
  "prune",
  "SELECT * FROM {schema}.prune_jobs($1, $2, $3, $4, $5::{schema}.oracle_job_state[], $6, $7, false)",
);

const pruneStep = statement<{ deleted: number; pass_deleted: string | null }>(
  "prune-step",
  "SELECT * FROM {schema}.prune_step($1, $2, $3, $4)",
);

/** Jobs looked at in one transaction: few enough that nobody waits for its locks or its snapshot. */
const BATCH = 2000;
const FIRST = "00000000-0000-0000-0000-000000000000";

/** Deletes finished jobs that are old enough, batch by batch; returns how many. `onBatch` hears the count so far. */
export async function prune(
  db: Database,
  options: PruneOptions,
  onBatch: (deleted: number) => void = () => {},
): Promise<number> {
  const { olderThanSeconds, keyProtectionSeconds, state, tenant, dryRun = false } = options;
  const states = state === undefined ? FINISHED : [state];
  let deleted = 0;
  for (let after: string | null = FIRST; after !== null; ) {
    const [row]: { deleted: number; next_after: string | null }[] = await db.query(pruneJobs, [
      after,
      BATCH,
      olderThanSeconds,
      keyProtectionSeconds,
      states,
      tenant ?? null,
      dryRun,
    ]);
    deleted += row?.deleted ?? 0;
    after = row?.next_after ?? null;
    onBatch(deleted);
  }
  return deleted;
}

export interface PruneStep {
  deleted: number;
  /** Set at the end of a pass over all jobs: how many it deleted. */
  passDeleted: number | undefined;
}

/** One batch of the installation's own pass; undefined when another worker is at it, or when it is not time. */
export async function pruneNext(
  db: Database,
  policy: { retentionSeconds: number | undefined; keyProtectionSeconds: number; pauseSeconds: number },
): Promise<PruneStep | undefined> {
  const { retentionSeconds, keyProtectionSeconds, pauseSeconds } = policy;
  const [row] = await db.query(pruneStep, [
    BATCH,
    retentionSeconds ?? null,
    keyProtectionSeconds,
    pauseSeconds,
  ]);
  if (!row) return undefined;
  const { deleted, pass_deleted: pass } = row;
  return { deleted, passDeleted: pass === null ? undefined : Number(pass) };
}
