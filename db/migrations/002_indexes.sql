-- Every index here is on columns that never change, or that are NULL on a job's ordinary way.
-- docs/decisions/0002-no-index-on-changing-columns.md says what replaces idx_jobs_state_created and idx_jobs_lease.

-- A job without a key of its own has its id for one, which the primary key keeps unique already: half of a bulk
-- insert's index work is saved by leaving such jobs out.
CREATE UNIQUE INDEX jobs_tenant_key ON {schema}.jobs (tenant_id, idempotency_key)
  WHERE idempotency_key <> job_id::text;

-- dedupe 'active': the database, not a check before the insert, keeps the twin unique.
CREATE UNIQUE INDEX jobs_active_spec ON {schema}.jobs (tenant_id, active_spec_hash)
  WHERE active_spec_hash IS NOT NULL;

-- dedupe 'result' and --spec-hash. A hash index: equality is all that is asked, at a quarter of the bytes.
CREATE INDEX idx_jobs_spec_hash ON {schema}.jobs USING hash (spec_hash);

CREATE INDEX idx_claims_expiry ON {schema}.claims (expires_at);
CREATE INDEX idx_artifacts_attempt ON {schema}.artifacts (job_id, attempt_no);
-- Twins to share bytes with, and rows that keep bytes from being collected.
CREATE INDEX idx_artifacts_sha256 ON {schema}.artifacts USING hash (sha256);
CREATE INDEX idx_audit_job ON {schema}.audit (job_id);

ALTER TABLE {schema}.ready_jobs SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
ALTER TABLE {schema}.outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {schema}.timers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {schema}.claims SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Random ids do not compress; trying costs a tenth of the claim that stores them.
ALTER TABLE {schema}.claims ALTER COLUMN job_ids SET STORAGE EXTERNAL;

-- Large payloads lie out of line, so that a change of state does not copy them. Compressing them with pglz takes
-- longer than everything else an insert does (4 KB of text: 232 µs instead of 135), lz4 hardly any time.
DO $$
DECLARE
  with_lz4 constant boolean := EXISTS (
    SELECT FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals));
  payload text;
BEGIN
  FOREACH payload IN ARRAY ARRAY['jobs.input_payload', 'results.result_payload'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ALTER COLUMN %I SET %s', split_part(payload, '.', 1),
      split_part(payload, '.', 2), CASE WHEN with_lz4 THEN 'COMPRESSION lz4' ELSE 'STORAGE EXTERNAL' END);
  END LOOP;
END
$$;
