import { binary } from "./arrays.js";
import { type Database, type SqlClient, statement } from "./database.js";

// Only a lease that has not run out can be extended, by the database's clock at this very moment: now() would
// be the transaction's start, and an old transaction would revive an expired lease.
const renewLeases = statement<{ attempt_id: string }>(
  "renew",
  `UPDATE {schema}.jobs j SET lease_expires_at = clock_timestamp() + make_interval(secs => $3)
   WHERE j.job_id = ANY ($1::uuid[]) AND j.current_attempt_id = ANY ($2::uuid[])
     AND j.state = 'RUNNING' AND j.lease_expires_at > clock_timestamp()
   RETURNING j.current_attempt_id AS attempt_id`,
);

/** Extends the leases in one statement; returns the attempts that still hold theirs. */
export async function renew(
  db: Database,
  leases: { jobId: string; attemptId: string }[],
  leaseSeconds: number,
  client?: SqlClient,
): Promise<Set<string>> {
  const ids = [leases.map((lease) => lease.jobId), leases.map((lease) => lease.attemptId)];
  const rows = await db.query(renewLeases, [...ids.map(binary.ids), leaseSeconds], client);
  return new Set(rows.map((row) => row.attempt_id));
}
