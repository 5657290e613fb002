import { type Database, statement } from "./database.js";

const noted = statement<{ job_id: string }>(
  "evolution-ingest",
  `UPDATE {schema}.evolution_jobs SET ingestion_attempts = ingestion_attempts + 1, last_ingestion_error = $2,
     ingestion_status = CASE WHEN $2::text IS NULL THEN 'INGESTED' ELSE 'FAILED' END,
     ingested_at = CASE WHEN $2::text IS NULL THEN clock_timestamp() END
   WHERE job_id = ANY ($1::uuid[]) AND ingestion_status <> 'INGESTED'
   RETURNING job_id`,
);

/** Whoever chooses parents has taken notice of these jobs' cards; returns those it is news for. */
export async function markIngested(db: Database, jobIds: string[]): Promise<string[]> {
  return (await db.query(noted, [jobIds, null])).map(({ job_id }) => job_id);
}

/** It tried and could not, for this reason; a card that was taken notice of before stays so. */
export async function markIngestionFailed(db: Database, jobId: string, why: string): Promise<boolean> {
  return (await db.query(noted, [[jobId], why])).length > 0;
}
