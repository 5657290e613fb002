import { EVOLVE_COMMIT } from "../core/evolution.js";
import { type Database, statement } from "./database.js";

// Not the lease's time: an attempt whose lease has run out may still renew it until somebody reclaims the job. And not
// jobs that are unknown here: two installations may share a repository.
const lost = statement<{ attempt_id: string }>(
  "evolution-lost",
  `SELECT a.attempt_id FROM unnest($1::uuid[], $2::uuid[]) AS a(job_id, attempt_id)
   JOIN {schema}.jobs j ON j.job_id = a.job_id
   WHERE j.state <> 'RUNNING' OR j.current_attempt_id <> a.attempt_id`,
);

const endedInVain = statement<{ job_id: string }>(
  "evolution-ended-in-vain",
  `SELECT j.job_id FROM {schema}.jobs j
   WHERE j.job_id = ANY ($1::uuid[]) AND j.job_type = $2 AND j.state IN ('FAILED_TERMINAL', 'CANCELLED')`,
);

/** Those of the attempts that do not hold their jobs any more. */
export async function findLost(
  db: Database,
  attempts: { jobId: string; attemptId: string }[],
): Promise<Set<string>> {
  if (attempts.length === 0) return new Set();
  const rows = await db.query(lost, [
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
