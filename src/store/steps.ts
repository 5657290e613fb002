import type { Step } from "../core/effect.js";
import type { Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { type Database, type SqlClient, statement } from "./database.js";
import { checkJobId } from "./read.js";

/** What fences a write of an attempt. */
export type Fence = Pick<Lease, "jobId" | "attemptId">;

export interface StepEntry {
  lease: Fence;
  name: string;
  seq: number;
  /** JSON text; null where the value is kept as an artifact. */
  value: string | null;
  valueHash: string;
  artifactId: string | null;
}

// 010_steps_and_effects.sql: fences the jobs and inserts the steps of those that are still their attempts'.
const rememberSteps = statement<{ lost: string[] }>(
  "remember-steps",
  `SELECT {schema}.remember_steps($1, $2, $3, $4, $5, $6, $7) AS lost`,
);

const readSteps = statement<StepRow>(
  "read-steps",
  `SELECT name, seq, attempt_no, value_hash, value, artifact_id, created_at
   FROM {schema}.steps WHERE job_id = $1 ORDER BY seq, name`,
);

const takeOver = statement<{ taken: number }>(
  "take-over-steps",
  `SELECT {schema}.take_over_steps($1, $2) AS taken`,
);

interface StepRow {
  name: string;
  seq: number;
  attempt_no: number;
  value_hash: string;
  value: JsonValue;
  artifact_id: string | null;
  created_at: Date;
}

/** Stores steps of many jobs in one statement; false for those whose attempts have lost their jobs. */
export async function remember(db: Database, entries: StepEntry[]): Promise<boolean[]> {
  const [row] = await db.query(rememberSteps, [
    entries.map(({ lease }) => lease.jobId),
    entries.map(({ lease }) => lease.attemptId),
    entries.map(({ name }) => name),
    entries.map(({ seq }) => seq),
    entries.map(({ value }) => value),
    entries.map(({ valueHash }) => valueHash),
    entries.map(({ artifactId }) => artifactId),
  ]);
  const lost = new Set(row?.lost);
  return entries.map(({ lease }) => !lost.has(lease.attemptId));
}

/** A job's remembered steps, in the order in which its handler came to them. */
export async function getSteps(db: Database, jobId: string): Promise<Step[]> {
  const rows = await db.query(readSteps, [checkJobId(jobId)]);
  return rows.map((row) => ({
    name: row.name,
    seq: row.seq,
    attemptNo: row.attempt_no,
    valueHash: row.value_hash,
    value: row.artifact_id === null ? row.value : undefined,
    artifactId: row.artifact_id,
    createdAt: row.created_at,
  }));
}

/** Gives a replay, in the transaction that submits it, what the old job had remembered before a step. */
export async function takeOverSteps(
  db: Database,
  jobId: string,
  before: string,
  client?: SqlClient,
): Promise<number> {
  const [row] = await db.query(takeOver, [jobId, before], client);
  return row?.taken ?? 0;
}
