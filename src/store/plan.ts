import type { EffectState } from "../core/effect.js";
import { JobPreconditionError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import { type Database, statement } from "./database.js";
import type { Intent } from "./effects.js";
import { checkJobId, requireJob } from "./read.js";
import type { Fence } from "./steps.js";

/** One effect of a plan, on its way to the database or back. */
export interface PlannedRow {
  name: string;
  requestHash: string;
  state: EffectState;
  approved: boolean;
  /** A person has said the last word on it. */
  resolved: boolean;
}

// 010_steps_and_effects.sql: records the plan unless there is one, under the fence, and returns how it stands.
const planEffects = statement<PlannedRow & { request_hash: string }>(
  "plan-effects",
  `SELECT * FROM {schema}.plan_effects($1, $2, $3, $4, $5, $6, $7, $8)`,
);

// 011_endings.sql: approves the plan and lifts the hold, or ends the job.
const decidePlan = statement<{ decided: boolean }>(
  "decide-plan",
  `SELECT {schema}.decide_plan($1, $2) AS decided`,
);

/** Records a plan, or finds the one that is there; empty when the lease is lost or a cancel was asked for. */
export async function plan(
  db: Database,
  lease: Fence,
  effects: Omit<Intent, "lease">[],
  approvedBy: string | null,
): Promise<PlannedRow[]> {
  const rows = await db.query(planEffects, [
    lease.jobId,
    lease.attemptId,
    effects.map(({ name }) => name),
    effects.map(({ seq }) => seq),
    effects.map(({ kind }) => kind),
    effects.map(({ request }) => request),
    effects.map(({ requestHash }) => requestHash),
    approvedBy,
  ]);
  return rows.map(({ request_hash: requestHash, ...row }) => ({ ...row, requestHash }));
}

/** Lets a planned job go on. */
export function approve(db: Database, jobId: string): Promise<Job> {
  return decide(db, jobId, null);
}

/** Ends a planned job. */
export function reject(db: Database, jobId: string, why: string): Promise<Job> {
  return decide(db, jobId, why);
}

async function decide(db: Database, jobId: string, why: string | null): Promise<Job> {
  const [row] = await db.query(decidePlan, [checkJobId(jobId), why]);
  const job = await requireJob(db, jobId);
  if (row?.decided) return job;
  const state = job.holdReason ? `${job.state} and held: ${job.holdReason}` : job.state;
  throw new JobPreconditionError(jobId, `is ${state}; only a job that awaits approval can be decided about`);
}
