-- Tenants: what each may do, what it may submit, what it has used. No row is one that two transactions would have to
-- wait for, and whoever has no limit pays nothing (docs/decisions/0015-sharing-between-tenants.md).

-- What a tenant may do. One without a row has the defaults.
CREATE TABLE {schema}.tenants (
  tenant_id text NOT NULL PRIMARY KEY CHECK (length(tenant_id) BETWEEN 1 AND 200),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Shares of a queue are in proportion to the weights.
  weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
  -- How many of its jobs may run at a time, and how many may wait.
  max_running integer CHECK (max_running BETWEEN 0 AND 1000000),
  max_waiting integer CHECK (max_waiting BETWEEN 0 AND 1000000),
  -- So many starts, and so many submissions, in so many seconds.
  start_limit integer CHECK (start_limit BETWEEN 1 AND 1000000),
  start_seconds integer CHECK (start_seconds > 0),
  enqueue_limit integer CHECK (enqueue_limit BETWEEN 1 AND 1000000),
  enqueue_seconds integer CHECK (enqueue_seconds > 0),
  -- How long finished jobs are kept; NULL: as long as everybody's.
  retention_seconds double precision CHECK (retention_seconds > 0),
  CONSTRAINT rates_have_a_span
    CHECK ((start_limit IS NULL) = (start_seconds IS NULL) AND (enqueue_limit IS NULL) = (enqueue_seconds IS NULL))
);

-- One row per running job that counts against a cap: its tenant's, its key's, or both. The trigger jobs_slot keeps
-- it; concurrency_key is '' where the job has none.
CREATE TABLE {schema}.slots (
  job_id uuid NOT NULL,
  tenant_id text NOT NULL,
  concurrency_key text NOT NULL,
  PRIMARY KEY (tenant_id, concurrency_key, job_id)
);

-- Jobs that a claim met while their key was full, out of the way of those behind them. Jobs of one key that the same
-- workers can start are one line.
CREATE TABLE {schema}.parked_jobs (
  ready_at timestamptz NOT NULL,
  job_id uuid NOT NULL,
  rank integer NOT NULL,
  concurrency_limit integer NOT NULL,
  tenant_id text NOT NULL,
  concurrency_key text NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (tenant_id, concurrency_key, line, rank, ready_at, job_id)
);

-- Moments at which a limit may let somebody through: a slot became free, a rate allows the next start. Consumed by
-- pass_openings. While jobs of a key are parked, one of them runs, is ready, or has an opening on the way.
CREATE TABLE {schema}.openings (
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  opening_id bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id text NOT NULL,
  queue_name text NOT NULL,
  concurrency_key text,
  PRIMARY KEY (due_at, opening_id)
);

-- Locked by whoever decides about a tenant's limits; holds what the start rate has saved up.
CREATE TABLE {schema}.turns (
  tenant_id text NOT NULL PRIMARY KEY,
  tokens double precision NOT NULL DEFAULT 'infinity',
  counted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the next start is allowed, while it is not.
  opens_at timestamptz
) WITH (fillfactor = 50);

-- How many jobs wait that count against their tenant's quota: the sum over all connections, each of which writes a row
-- of its own. No row is one that two transactions would have to wait for.
CREATE TABLE {schema}.waiting_counts (
  tenant_id text NOT NULL,
  backend integer NOT NULL,
  jobs bigint NOT NULL,
  PRIMARY KEY (tenant_id, backend)
) WITH (fillfactor = 50);

-- Submissions of tenants with a rate, counted per tenth of its span, again by connection.
CREATE TABLE {schema}.submissions (
  at timestamptz NOT NULL,
  backend integer NOT NULL,
  jobs bigint NOT NULL,
  tenant_id text NOT NULL,
  PRIMARY KEY (tenant_id, at, backend)
);

-- Only jobs with a key are in it.
CREATE INDEX idx_ready_key ON {schema}.ready_jobs (tenant_id, concurrency_key, rank, ready_at)
  WHERE concurrency_key IS NOT NULL;

DO $$
DECLARE
  name text;
BEGIN
  -- Small tables that change all the time.
  FOREACH name IN ARRAY ARRAY['slots', 'parked_jobs', 'openings', 'waiting_counts', 'submissions'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY[
    'tenants', 'slots', 'parked_jobs', 'openings', 'turns', 'waiting_counts', 'submissions'
  ] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['tenants', 'slots', 'parked_jobs'] LOOP
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I FOR SELECT TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant()))', name);
  END LOOP;
END
$$;

-- A tenant sees its own limits and changes none; 015_limits.sql says when a server does. Slots, parked jobs and counts
-- are written by functions only.
GRANT SELECT, INSERT, UPDATE ON {schema}.tenants TO {role}_worker, {role}_server;
GRANT SELECT ON {schema}.tenants TO {role}_tenant;
GRANT SELECT ON {schema}.slots, {schema}.parked_jobs TO {role}_worker, {role}_server;
GRANT SELECT ON {schema}.turns, {schema}.openings TO {role}_worker;

-- Accounts and reports by time. These hold a few bytes per megabyte of their table, and their columns never change.
-- An index made on an empty table keeps its first megabyte up to date with every insert; the rest is left to vacuum,
-- and so is that.
DO $$
DECLARE
  moment text;
  name text;
BEGIN
  FOREACH moment IN ARRAY ARRAY['jobs.created_at', 'past_attempts.started_at', 'attempt_reports.started_at', 'results.created_at'] LOOP
    name := format('idx_%s', replace(moment, '.', '_'));
    EXECUTE format('CREATE INDEX %I ON {schema}.%I USING brin (%I)', name, split_part(moment, '.', 1),
      split_part(moment, '.', 2));
    PERFORM brin_desummarize_range(format('{schema}.%I', name)::regclass, 0);
  END LOOP;
END
$$;

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

-- A job counts against its tenant's quota while it waits, whoever ends that.
CREATE FUNCTION {schema}.jobs_counted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  waits constant boolean := NEW.state IN ('PENDING', 'FAILED_RETRYABLE');
BEGIN
  IF waits <> (OLD.state IN ('PENDING', 'FAILED_RETRYABLE')) THEN
    INSERT INTO {schema}.waiting_counts AS w (tenant_id, backend, jobs)
    VALUES (NEW.tenant_id, pg_backend_pid(), CASE WHEN waits THEN 1 ELSE -1 END)
    ON CONFLICT (tenant_id, backend) DO UPDATE SET jobs = w.jobs + excluded.jobs;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER jobs_counted AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (NEW.counted) EXECUTE FUNCTION {schema}.jobs_counted();

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

REVOKE ALL ON FUNCTION
  {schema}.count_waiting, {schema}.jobs_counted, {schema}.enqueue_delay, {schema}.note_submission, {schema}.count_new,
  {schema}.check_quotas FROM PUBLIC;
