import { type Database, statement } from "./database.js";

export interface JobVersion {
  jobId: string;
  /** Changes with everything that a page about the job shows, but for its log. */
  version: string;
  /** The number of the attempt's last log line. */
  lastSeq: number;
}

// One look at many jobs: by their primary keys, and the last entry of the current attempt's log.
const versions = statement<{ job_id: string; version: string; last_seq: number }>(
  "watch-jobs",
  `SELECT j.job_id, md5(concat_ws(' ', j.state, j.attempt_count, j.updated_at, j.lease_expires_at, j.hold_reason,
       j.cancel_requested_at, r.progress ->> 'at')) AS version,
     coalesce((
       SELECT l.seq FROM {schema}.attempt_logs l WHERE l.job_id = j.job_id AND l.attempt_no = j.attempt_count
       ORDER BY l.seq DESC LIMIT 1), 0) AS last_seq
   FROM {schema}.jobs j
   LEFT JOIN {schema}.attempt_reports r ON r.job_id = j.job_id AND r.attempt_no = j.attempt_count
   WHERE j.job_id = ANY ($1::uuid[])`,
);

export async function jobVersions(db: Database, jobIds: string[]): Promise<JobVersion[]> {
  const rows = await db.query(versions, [jobIds]);
  return rows.map((row) => ({ jobId: row.job_id, version: row.version, lastSeq: row.last_seq }));
}
