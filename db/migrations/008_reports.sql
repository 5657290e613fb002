-- What an attempt reports while it runs: the only ways in which progress, logs and artifacts are written. They run
-- as the owner, so no role of the application can write, change or remove them otherwise. Each locks the job's row, which
-- a settlement or a reclaim changes: what is written here is committed before the attempt ends, or not at all.

-- Progress, usage and log lines of many attempts in one statement; returns the attempts that still hold their jobs.
-- p_reports: [{job_id, attempt_id, progress, progress_age, tokens, cost,
-- lines: [{seq, age, level, message, fields}]}], with progress and fields as JSON in a text, or null. tokens and cost are
-- the attempt's sums so far, or null: a report that is written twice says the same twice.
-- Ages are seconds before now: the moments kept are the database's, whatever the worker's clock says.
CREATE FUNCTION {schema}.report_attempts(p_reports jsonb) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
   WITH holding AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count AS attempt_no, r.attempt_id, j.attempt_started_at, j.tenant_id, r.progress,
       r.progress_age, r.tokens, r.cost, r.lines
     FROM jsonb_to_recordset(p_reports) AS r(
       job_id uuid, attempt_id uuid, progress text, progress_age float8, tokens bigint, cost float8, lines jsonb)
     JOIN {schema}.jobs j
       ON j.job_id = r.job_id AND j.current_attempt_id = r.attempt_id AND j.state = 'RUNNING'
     -- In the order in which whoever locks several jobs takes them.
     ORDER BY j.job_id
     FOR NO KEY UPDATE OF j
   ), progressed AS (
     INSERT INTO {schema}.attempt_reports AS a (job_id, attempt_no, started_at, tenant_id, progress, tokens, cost)
     SELECT h.job_id, h.attempt_no, h.attempt_started_at, h.tenant_id, h.progress::jsonb
       || jsonb_build_object('at', clock_timestamp() - make_interval(secs => h.progress_age)), h.tokens, h.cost
     FROM holding h
     WHERE h.progress IS NOT NULL OR h.tokens IS NOT NULL OR h.cost IS NOT NULL
     ON CONFLICT (job_id, attempt_no) DO UPDATE SET progress = coalesce(excluded.progress, a.progress),
       tokens = coalesce(excluded.tokens, a.tokens), cost = coalesce(excluded.cost, a.cost)
   ), logged AS (
     INSERT INTO {schema}.attempt_logs (job_id, attempt_no, seq, at, level, tenant_id, message, fields)
     SELECT h.job_id, h.attempt_no, l.seq, clock_timestamp() - make_interval(secs => l.age), l.level, h.tenant_id,
       l.message, l.fields::jsonb
     FROM holding h
     CROSS JOIN LATERAL jsonb_to_recordset(h.lines)
       AS l(seq integer, age float8, level text, message text, fields text)
     -- The reply to an earlier try may have been lost.
     ON CONFLICT (job_id, attempt_no, seq) DO NOTHING
   )
   SELECT attempt_id FROM holding;
END
$$;

-- Records an artifact and says what became of it: 'recorded', 'lost' when the attempt does not hold its job, or
-- 'absent' when neither a payload nor a reference was given and the tenant has no twin whose bytes it could share.
-- The twin's row is locked while its reference is copied: whoever prunes it waits, and then finds the bytes in use.
CREATE FUNCTION {schema}.record_artifact(
  p_artifact_id uuid, p_job_id uuid, p_attempt_id uuid, p_type text, p_name text, p_media_type text,
  p_sha256 text, p_size bigint, p_reference text, p_payload jsonb
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  job record;
  bytes_at text := p_reference;
BEGIN
  SELECT j.attempt_count, j.tenant_id INTO job FROM {schema}.jobs j
  WHERE j.job_id = p_job_id AND j.current_attempt_id = p_attempt_id AND j.state = 'RUNNING'
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'lost';
  END IF;
  IF p_payload IS NULL AND p_reference IS NULL THEN
    SELECT t.reference INTO bytes_at FROM {schema}.artifacts t
    WHERE t.sha256 = p_sha256 AND t.size = p_size AND t.tenant_id = job.tenant_id AND t.reference IS NOT NULL
    LIMIT 1 FOR KEY SHARE;
    IF NOT FOUND THEN
      RETURN 'absent';
    END IF;
  END IF;
  INSERT INTO {schema}.artifacts (
    artifact_id, job_id, attempt_id, attempt_no, tenant_id, artifact_type, name, media_type, sha256, size,
    reference, artifact_payload)
  VALUES (
    p_artifact_id, p_job_id, p_attempt_id, job.attempt_count, job.tenant_id, p_type, p_name, p_media_type,
    p_sha256, p_size, bytes_at, p_payload)
  -- The reply to an earlier try may have been lost.
  ON CONFLICT (artifact_id) DO NOTHING;
  RETURN 'recorded';
END
$$;

REVOKE ALL ON FUNCTION {schema}.report_attempts, {schema}.record_artifact FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.report_attempts, {schema}.record_artifact TO {role}_worker;
