import { EVOLVE_COMMIT } from "../core/evolution.js";
import { type Database, statement } from "./database.js";

// Not the lease's time: an attempt whose lease has run out may still renew it until somebody reclaims the job.
const holding = statement<{ attempt_id: string }>(
  "evolution-holding",
  `SELECT j.current_attempt_id AS attempt_id FROM {schema}.jobs j
   WHERE j.job_id = ANY ($1::uuid[]) AND j.current_attempt_id = ANY ($2::uuid[]) AND j.state = 'RUNNING'`,
);

const endedInVain = statement<{ job_id: string }>(
  "evolution-ended-in-vain",
  `SELECT j.job_id FROM {schema}.jobs j
   WHERE j.job_id = ANY ($1::uuid[]) AND j.job_type = $2 AND j.state IN ('FAILED_TERMINAL', 'CANCELLED')`,
);

/** Those of the attempts that hold their jobs. */
export async function findHolding(
  db: Database,
  attempts: { jobId: string; attemptId: string }[],
): Promise<Set<string>> {
  if (attempts.length === 0) return new Set();
  const rows = await db.query(holding, [
    attempts.map(({ jobId }) => jobId),
    attempts.map(({ attemptId }) => attemptId),
  ]);
  return new Set(rows.map(({ attempt_id }) => attempt_id));
}

/** Those of the jobs that have ended without success: their commits are nobody's. */
export async function findEndedInVain(db: Database, jobIds: string[]): Promise<string[]> {
  if (jobIds.length === 0) return [];
  return (await db.query(endedInVain, [jobIds, EVOLVE_COMMIT])).map(({ job_id }) => job_id);
}
