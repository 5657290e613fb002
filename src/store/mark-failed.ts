import type { StoredError } from "../core/job.js";
import { type Database, statement } from "./database.js";

// A running job belongs to its attempt, and what is finished stays as it is: neither is touched.
const failWaiting = statement<{ job_id: string }>(
  "mark-failed",
  `UPDATE {schema}.jobs SET state = 'FAILED_TERMINAL', completed_at = clock_timestamp(), updated_at = clock_timestamp(),
     hold_reason = NULL, active_spec_hash = NULL, error_json = $2
   WHERE job_id = $1 AND state IN ('PENDING', 'FAILED_RETRYABLE') RETURNING job_id`,
);

/** Ends a job that waits, with the reason; false when it does not wait. */
export async function markFailed(db: Database, jobId: string, error: StoredError): Promise<boolean> {
  return (await db.query(failWaiting, [jobId, JSON.stringify(error)])).length > 0;
}
