import { beforeAll } from "vitest";
import type { Lease } from "../../dist/core/job.js";
import { report } from "../../dist/store/report.js";
import { settle } from "../../dist/store/settle.js";
import { ArtifactKeeper } from "../../dist/worker/keep-artifact.js";
import { claimFrom, workerDatabase } from "./leases.js";
import type { TestDatabase } from "./oracle.js";

/** The tenant who tries, and the one whose rows are wanted. */
export const THIEF = "thief";
export const VICTIM = "victim";

export interface Victim {
  /** Succeeded, with a result, a log and an artifact; its key is invoice-1. */
  done: string;
  /** Waits; its key is invoice-2. */
  waiting: string;
  running: Lease;
  /** Held until somebody approves its plan. */
  planned: string;
  /** Of the running job; in doubt. */
  effect: string;
}

/** Jobs of the victim in every state there is something to steal from. */
export function useVictim(db: TestDatabase): Victim {
  const victim = {} as Victim;
  beforeAll(async () => {
    const store = workerDatabase(db);
    const submit = async (queue: string, options = {}) =>
      (await db.oracle.enqueue("pay", { amount: 7 }, { tenant: VICTIM, queue, ...options })).id;
    victim.done = await submit("done", { key: "invoice-1" });
    const [lease] = (await claimFrom(store, "done")).leases as [Lease];
    await new ArtifactKeeper(store, await db.oracle.artifactStore()).keep(lease, "note", {});
    const line = {
      seq: 1,
      level: "info" as const,
      message: "paying",
      fields: undefined,
      madeAt: performance.now(),
    };
    await report(store, [{ lease, progress: undefined, lines: [line] }]);
    await settle(store, [{ lease, outcome: { kind: "succeeded", resultText: '"paid"', contentHash: "h" } }]);
    victim.waiting = await submit("waiting", { key: "invoice-2", dedupe: "active", deadline: 3600 });
    await submit("later", { runAfter: 3600 });
    await db.oracle.cancel(await submit("cancelled"));
    await submit("running");
    victim.running = (await claimFrom(store, "running")).leases[0] as Lease;
    victim.planned = await submit("planned");
    await db.as("worker", "UPDATE oracle.jobs SET hold_reason = 'awaiting approval' WHERE job_id = $1", [
      victim.planned,
    ]);
    const [effect] = await db.sql(
      `INSERT INTO oracle.effects (job_id, effect_id, seq, attempt_no, kind, state, tenant_id, name, request, request_hash,
         dispatched_at, in_doubt_at)
       VALUES ($1, gen_random_uuid(), 1, 1, 'unsafe', 'IN_DOUBT', $2, 'transfer', '{}', 'h', now(), now())
       RETURNING effect_id`,
      [victim.running.jobId, VICTIM],
    );
    victim.effect = effect?.effect_id;
    await db.sql(
      `WITH job AS (
         INSERT INTO oracle.evolution_jobs (job_id, tenant_id, repository_id, base_commit_hash, result_commit_hash,
           plan_summary, worker) VALUES ($1, $2, 'r', repeat('a', 40), repeat('b', 40), 'p', '{}')
       ), card AS (
         INSERT INTO oracle.commit_cards (job_id, tenant_id, repository_id, commit_hash, parent_commit_hash, subject,
           change_summary, key_files, highlights) VALUES ($1, $2, 'r', repeat('b', 40), repeat('a', 40), 's', 'c', '[]', '[]')
       ), metric AS (
         INSERT INTO oracle.metrics (tenant_id, repository_id, commit_hash, name, value, higher_is_better)
         VALUES ($2, 'r', repeat('b', 40), 'speed', 1, true)
       )
       INSERT INTO oracle.job_artifacts (job_id, artifact_id, tenant_id, kind) VALUES ($1, gen_random_uuid(), $2, 'plan')`,
      [victim.done, VICTIM],
    );
    await store.close();
  });
  return victim;
}
