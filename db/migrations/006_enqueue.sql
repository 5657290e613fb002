-- Submitting: what a tenant's quota and rate refuse, and the way in for other languages.

-- How many jobs of a tenant count against its quota. Each connection keeps a row of its own, so that nobody waits for
-- somebody else's transaction; the rows of connections that are gone are put together now and then.
CREATE FUNCTION {schema}.count_waiting(p_tenant text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  counts record;
BEGIN
  SELECT sum(w.jobs) AS jobs, count(*) AS rows INTO counts
  FROM {schema}.waiting_counts w WHERE w.tenant_id = p_tenant;
  IF counts.rows > 50 THEN
    WITH gone AS (
      DELETE FROM {schema}.waiting_counts WHERE ctid = ANY (ARRAY(
        SELECT w.ctid FROM {schema}.waiting_counts w
        WHERE w.tenant_id = p_tenant AND w.backend <> pg_backend_pid()
          AND w.backend NOT IN (SELECT a.pid FROM pg_stat_activity a WHERE a.pid IS NOT NULL)
        FOR UPDATE SKIP LOCKED)) RETURNING jobs
    )
    INSERT INTO {schema}.waiting_counts AS w (tenant_id, backend, jobs)
    SELECT p_tenant, pg_backend_pid(), coalesce(sum(g.jobs), 0) FROM gone g
    ON CONFLICT (tenant_id, backend) DO UPDATE SET jobs = w.jobs + excluded.jobs;
  END IF;
  RETURN coalesce(counts.jobs, 0);
END
$$;

-- Seconds until p_jobs more submissions are within the rate; 0 when they are now. Counts what has been committed:
-- transactions that run at the same time do not see each other.
CREATE FUNCTION {schema}.enqueue_delay(p_tenant text, p_jobs bigint, p_limit integer, p_seconds integer)
RETURNS double precision
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    WITH counted AS (
      SELECT s.at, sum(sum(s.jobs)) OVER (ORDER BY s.at DESC) AS since
      FROM {schema}.submissions s
      WHERE s.tenant_id = p_tenant AND s.at > clock_timestamp() - make_interval(secs => p_seconds)
      GROUP BY s.at
    )
    -- The youngest tenth that must have left the span before there is room.
    SELECT coalesce(extract(epoch FROM max(c.at) - clock_timestamp()) + p_seconds, 0)
    FROM counted c WHERE c.since + p_jobs > p_limit
  );
END
$$;

-- Counts submissions, and forgets those that no longer matter.
CREATE FUNCTION {schema}.note_submission(p_tenant text, p_jobs bigint, p_seconds integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM {schema}.submissions WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM {schema}.submissions s
    WHERE s.tenant_id = p_tenant AND s.at < clock_timestamp() - make_interval(secs => 2 * p_seconds)
    LIMIT 100 FOR UPDATE SKIP LOCKED));
  INSERT INTO {schema}.submissions (tenant_id, at, backend, jobs)
  VALUES (
    p_tenant, to_timestamp(floor(extract(epoch FROM clock_timestamp()) * 10 / p_seconds) * p_seconds / 10),
    pg_backend_pid(), p_jobs)
  ON CONFLICT (tenant_id, at, backend) DO UPDATE SET jobs = submissions.jobs + excluded.jobs;
END
$$;

-- How many of the jobs are new: not there already by their key or as an unfinished twin.
CREATE FUNCTION {schema}.count_new(p_tenant text, p_tenants text[], p_keys text[], p_active_spec_hashes text[])
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  IF p_keys IS NULL AND p_active_spec_hashes IS NULL THEN
    RETURN (SELECT count(*) FROM unnest(p_tenants) AS n(tenant_id) WHERE n.tenant_id = p_tenant);
  END IF;
  RETURN (
    SELECT count(*) FROM unnest(p_tenants, p_keys, p_active_spec_hashes) AS n(tenant_id, key, active)
    WHERE n.tenant_id = p_tenant
      AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.tenant_id = p_tenant AND j.idempotency_key = n.key
        AND j.idempotency_key <> j.job_id::text)
      AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.job_id = {schema}.key_as_id(n.key)
        AND j.tenant_id = p_tenant AND j.idempotency_key = n.key)
      AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.tenant_id = p_tenant AND j.active_spec_hash = n.active)
  );
END
$$;

-- Refuses submissions beyond a tenant's quota or rate before anything is stored, and counts those that a rate lets
-- through. Jobs that are there already cost nothing. Returns the tenants that have a quota.
CREATE FUNCTION {schema}.check_quotas(p_tenants text[], p_keys text[], p_active_spec_hashes text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  rule record;
  asked bigint;
  waiting bigint;
  delay double precision;
  with_quota text[] := '{}';
BEGIN
  FOR rule IN
    SELECT t.*, quote_literal(t.tenant_id) AS name
    FROM (SELECT DISTINCT n.tenant_id FROM unnest(p_tenants) AS n(tenant_id)) n
    JOIN {schema}.tenants t ON t.tenant_id = n.tenant_id
    WHERE t.max_waiting IS NOT NULL OR t.enqueue_limit IS NOT NULL
  LOOP
    asked := {schema}.count_new(rule.tenant_id, p_tenants, p_keys, p_active_spec_hashes);
    CONTINUE WHEN asked = 0;
    IF rule.max_waiting IS NOT NULL THEN
      with_quota := with_quota || rule.tenant_id;
      waiting := {schema}.count_waiting(rule.tenant_id);
      IF waiting + asked > rule.max_waiting THEN
        RAISE EXCEPTION 'QUOTA_EXCEEDED: tenant % has % jobs waiting and may have %; there is no room for % more, try again when some have started',
          rule.name, waiting, rule.max_waiting, asked USING ERRCODE = 'program_limit_exceeded';
      END IF;
    END IF;
    IF rule.enqueue_limit IS NOT NULL THEN
      IF asked > rule.enqueue_limit THEN
        RAISE EXCEPTION 'RATE_LIMITED: tenant % may submit % jobs in % s, and % at once are more than that; submit fewer at a time',
          rule.name, rule.enqueue_limit, rule.enqueue_seconds, asked USING ERRCODE = 'program_limit_exceeded';
      END IF;
      delay := {schema}.enqueue_delay(rule.tenant_id, asked, rule.enqueue_limit, rule.enqueue_seconds);
      IF delay > 0 THEN
        RAISE EXCEPTION 'RATE_LIMITED: tenant % may submit % jobs in % s; try again in % s',
          rule.name, rule.enqueue_limit, rule.enqueue_seconds, round(delay::numeric, 2)
          USING ERRCODE = 'program_limit_exceeded', DETAIL = 'retry_after_seconds=' || round(delay::numeric, 3);
      END IF;
      PERFORM {schema}.note_submission(rule.tenant_id, asked, rule.enqueue_seconds);
    END IF;
  END LOOP;
  RETURN with_quota;
END
$$;

-- Enqueue for other languages: one call inside the caller's own transaction.
--   SELECT * FROM oracle.enqueue('summarize_text', '{"text": "…"}', key => 'doc-42');
-- The same key and specification give the same job (created = false); another specification is refused.
CREATE FUNCTION {schema}.enqueue(
  job_type text,
  input jsonb,
  key text DEFAULT NULL,
  queue text DEFAULT 'default',
  priority integer DEFAULT 0,
  run_after timestamptz DEFAULT NULL,
  tenant_id text DEFAULT NULL,
  max_attempts integer DEFAULT 3,
  timeout_seconds integer DEFAULT NULL,
  deadline timestamptz DEFAULT NULL,
  dedupe text DEFAULT NULL,
  handler_version text DEFAULT NULL,
  concurrency_key text DEFAULT NULL,
  concurrency_limit integer DEFAULT NULL
) RETURNS TABLE (job_id uuid, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  tenant constant text := coalesce(enqueue.tenant_id, {schema}.current_tenant(), 'default');
  hash text;
  id uuid;
  found_hash text;
BEGIN
  PERFORM {schema}.check_tenants(ARRAY[tenant]);
  PERFORM {schema}.check_payload(enqueue.input);
  hash := {schema}.spec_hash(enqueue.job_type, enqueue.input, enqueue.handler_version);
  IF dedupe NOT IN ('active', 'result') THEN
    RAISE EXCEPTION 'INVALID_ARGUMENT: dedupe is %, it must be active or result', quote_literal(dedupe)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF dedupe = 'result' THEN
    SELECT j.job_id INTO id FROM {schema}.jobs j
    WHERE j.spec_hash = hash AND j.tenant_id = tenant AND j.state = 'SUCCEEDED'
    ORDER BY j.completed_at DESC LIMIT 1;
    IF FOUND THEN
      RETURN QUERY SELECT id, false;
      RETURN;
    END IF;
  END IF;
  FOR round IN 1 .. 10 LOOP
    id := gen_random_uuid();
    PERFORM FROM {schema}.enqueue_jobs(
      ARRAY[id], ARRAY[tenant], ARRAY[enqueue.queue], ARRAY[enqueue.job_type], ARRAY[enqueue.key], ARRAY[hash],
      ARRAY[CASE WHEN dedupe = 'active' THEN hash END], ARRAY[enqueue.priority], ARRAY[enqueue.max_attempts],
      ARRAY[enqueue.timeout_seconds], ARRAY[enqueue.run_after], NULL, ARRAY[enqueue.deadline], NULL,
      ARRAY[enqueue.handler_version], NULL, ARRAY[enqueue.concurrency_key],
      ARRAY[coalesce(enqueue.concurrency_limit, CASE WHEN enqueue.concurrency_key IS NOT NULL THEN 1 END)],
      ARRAY[enqueue.input::text]);
    IF FOUND THEN
      RETURN QUERY SELECT id, true;
      RETURN;
    END IF;
    SELECT j.job_id, j.spec_hash INTO id, found_hash FROM {schema}.jobs j
    WHERE j.tenant_id = tenant AND j.idempotency_key = enqueue.key AND j.idempotency_key <> j.job_id::text;
    IF NOT FOUND THEN
      SELECT j.job_id, j.spec_hash INTO id, found_hash FROM {schema}.jobs j
      WHERE j.job_id = {schema}.key_as_id(enqueue.key) AND j.tenant_id = tenant AND j.idempotency_key = enqueue.key;
    END IF;
    IF NOT FOUND THEN
      SELECT j.job_id, j.spec_hash INTO id, found_hash FROM {schema}.jobs j
      WHERE j.tenant_id = tenant AND j.active_spec_hash = hash;
    END IF;
    IF FOUND AND found_hash <> hash THEN
      RAISE EXCEPTION 'IDEMPOTENCY_CONFLICT: key % belongs to job %, which has another type or input',
        quote_literal(enqueue.key), id USING ERRCODE = 'unique_violation';
    ELSIF FOUND THEN
      RETURN QUERY SELECT id, false;
      RETURN;
    END IF;
    -- The twin finished between the insert and the look-up: there is room for a new job.
  END LOOP;
  RAISE EXCEPTION 'enqueue kept meeting a twin that was gone a moment later; try again'
    USING ERRCODE = 'serialization_failure';
END
$$;
