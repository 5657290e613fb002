import { EVOLVE_COMMIT } from "../core/evolution.js";
import type { StoredError } from "../core/job.js";
import { type Database, statement } from "./database.js";

// A running job belongs to its attempt, and what is finished stays as it is: neither is touched.
const failWaiting = statement<{ job_id: string }>(
  "mark-failed",
  `WITH changed AS (
     UPDATE {schema}.jobs SET state = 'FAILED_TERMINAL', completed_at = clock_timestamp(),
       updated_at = clock_timestamp(), hold_reason = NULL, active_spec_hash = NULL, error_json = $2
     WHERE job_id = $1 AND job_type = $3 AND state IN ('PENDING', 'FAILED_RETRYABLE') RETURNING tenant_id, job_id
   ), noted AS (
     INSERT INTO {schema}.audit (tenant_id, job_id, action) SELECT tenant_id, job_id, 'fail' FROM changed
   )
   SELECT job_id FROM changed`,
);

/** Ends an evolution job that waits, with the reason; false when it does not wait. */
export async function markFailed(db: Database, jobId: string, error: StoredError): Promise<boolean> {
  return (await db.query(failWaiting, [jobId, JSON.stringify(error), EVOLVE_COMMIT])).length > 0;
}
