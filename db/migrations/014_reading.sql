-- What people look at: lists by any filter, and what has been going on. docs/decisions/0014-listing-jobs.md

-- Workers see every tenant. A server may answer somebody who does; like the tenant, it says so for one transaction, in
-- which it can look but not change: a change is made for one tenant. With a tenant set it acts for that one only.
CREATE FUNCTION {schema}.sees_every_tenant() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT {schema}.caller_has('{role}_worker')
    OR ({schema}.caller_has('{role}_server') AND current_setting('{schema}.every_tenant', true) = 'on'
      AND {schema}.current_tenant() IS NULL)
$$;

-- Tenant, type and queue of a job never change, so this index costs one insert in a job's life. The groups in front
-- are found by skipping from one to the next, and each is read from its newest job on.
CREATE INDEX idx_jobs_kind ON {schema}.jobs (tenant_id, job_type, queue_name, job_id);

CREATE INDEX idx_jobs_held ON {schema}.jobs (job_id) WHERE hold_reason IS NOT NULL;

-- One row per job that ended without a result. The rare states are found here, so that the table of jobs needs no
-- index on its state.
CREATE TABLE {schema}.dead_jobs (
  job_id uuid NOT NULL,
  tenant_id text NOT NULL,
  state text NOT NULL,
  PRIMARY KEY (tenant_id, state, job_id)
);
CREATE INDEX idx_dead_jobs_state ON {schema}.dead_jobs (state, job_id);

CREATE FUNCTION {schema}.jobs_dead() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.state IN ('FAILED_TERMINAL', 'CANCELLED') THEN
    DELETE FROM {schema}.dead_jobs d
    WHERE d.tenant_id = OLD.tenant_id AND d.state = OLD.state::text AND d.job_id = OLD.job_id;
  END IF;
  IF NEW.state IN ('FAILED_TERMINAL', 'CANCELLED') THEN
    INSERT INTO {schema}.dead_jobs (job_id, tenant_id, state)
    VALUES (NEW.job_id, NEW.tenant_id, NEW.state::text) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION {schema}.jobs_dead FROM PUBLIC;

CREATE TRIGGER jobs_dead AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (NEW.state <> ALL ('{RUNNING, SUCCEEDED}'::{schema}.oracle_job_state[]))
EXECUTE FUNCTION {schema}.jobs_dead();

-- What one worker process did in ten seconds, for one tenant, or for all of them together (tenant_id '').
-- A worker writes its own rows only, over and over until their time has passed: a lost reply does no harm.
CREATE TABLE {schema}.activity (
  slot timestamptz NOT NULL,
  tenant_id text NOT NULL,
  worker_id text NOT NULL,
  -- {succeeded, failed: {code: n}, wait: {bucket: n}, run: {bucket: n}}
  counts jsonb NOT NULL,
  PRIMARY KEY (tenant_id, slot, worker_id)
);
CREATE INDEX idx_activity_slot ON {schema}.activity (slot);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['dead_jobs', 'activity'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I TO {role}_server '
      'USING (tenant_id = (SELECT {schema}.current_tenant()))', name);
    EXECUTE format('GRANT SELECT ON {schema}.%I TO {role}_worker, {role}_server', name);
  END LOOP;
  FOR name IN
    SELECT p.tablename FROM pg_catalog.pg_policies p
    WHERE p.schemaname = '{schema}' AND p.policyname = 'own_rows' ORDER BY 1
  LOOP
    EXECUTE format('CREATE POLICY every_row ON {schema}.%I FOR SELECT TO {role}_server '
      'USING ((SELECT {schema}.sees_every_tenant() AND {schema}.current_tenant() IS NULL))', name);
  END LOOP;
END
$$;
GRANT INSERT, UPDATE, DELETE ON {schema}.activity TO {role}_worker;

-- The running jobs that the caller may see. Claims name them; they are the workers' table and list every tenant's.
CREATE FUNCTION {schema}.running_jobs() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
  SELECT j.job_id FROM {schema}.jobs j
  WHERE j.job_id = ANY (ARRAY(SELECT unnest(c.job_ids) FROM {schema}.claims c)) AND j.state = 'RUNNING'
    AND ((SELECT {schema}.sees_every_tenant()) OR j.tenant_id = (SELECT {schema}.current_tenant()))
$$;

-- One tenant's timers: how many others have must not show in an answer.
CREATE INDEX idx_timers_tenant ON {schema}.timers (tenant_id, kind);

-- The waiting jobs that the caller may see: ready, parked, waiting for their time, or held. NULL when so many of those
-- wait that the newest jobs are better looked for among all.
CREATE FUNCTION {schema}.waiting_jobs(most integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
DECLARE
  every constant boolean := {schema}.sees_every_tenant();
  tenant constant text := {schema}.current_tenant();
  waiting uuid[];
  queue text;
BEGIN
  IF every THEN
    waiting := ARRAY(
      (SELECT r.job_id FROM {schema}.ready_jobs r LIMIT most + 1)
      UNION ALL (SELECT t.job_id FROM {schema}.timers t LIMIT most + 1)
      UNION ALL (SELECT p.job_id FROM {schema}.parked_jobs p LIMIT most + 1) LIMIT most + 1);
  ELSE
    waiting := ARRAY(
      (SELECT t.job_id FROM {schema}.timers t WHERE t.tenant_id = tenant LIMIT most + 1)
      UNION ALL (SELECT p.job_id FROM {schema}.parked_jobs p WHERE p.tenant_id = tenant LIMIT most + 1) LIMIT most + 1);
    WHILE cardinality(waiting) <= most LOOP
      SELECT r.queue_name INTO queue FROM {schema}.ready_jobs r
      WHERE r.queue_name > coalesce(queue, '') ORDER BY r.queue_name LIMIT 1;
      EXIT WHEN NOT FOUND;
      waiting := waiting || ARRAY(
        SELECT r.job_id FROM {schema}.ready_jobs r WHERE r.queue_name = queue AND r.tenant_id = tenant LIMIT most + 1);
    END LOOP;
  END IF;
  IF cardinality(waiting) > most THEN
    RETURN NULL;
  END IF;
  RETURN ARRAY(
    SELECT unnest(waiting)
    UNION SELECT j.job_id FROM {schema}.jobs j WHERE j.hold_reason IS NOT NULL AND (every OR j.tenant_id = tenant));
END
$$;

-- Ready jobs that the caller may see, by queue, counted up to a bound, and how long the first of them has been ready.
CREATE FUNCTION {schema}.queue_depths(most integer)
RETURNS TABLE (queue_name text, ready integer, oldest_ready_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  every constant boolean := {schema}.sees_every_tenant();
  tenant constant text := {schema}.current_tenant();
  queue text;
BEGIN
  LOOP
    SELECT r.queue_name INTO queue FROM {schema}.ready_jobs r
    WHERE r.queue_name > coalesce(queue, '') ORDER BY r.queue_name LIMIT 1;
    EXIT WHEN NOT FOUND;
    IF every THEN
      RETURN QUERY SELECT queue, count(*)::integer, min(f.ready_at) FROM (
        SELECT r.ready_at FROM {schema}.ready_jobs r WHERE r.queue_name = queue LIMIT most) f;
    ELSE
      RETURN QUERY SELECT queue, count(*)::integer, min(f.ready_at) FROM (
        SELECT r.ready_at FROM {schema}.ready_jobs r
        WHERE r.queue_name = queue AND r.tenant_id = tenant LIMIT most) f HAVING count(*) > 0;
    END IF;
  END LOOP;
END
$$;

-- Some ready jobs of each queue that the caller may see, from the heads on.
CREATE FUNCTION {schema}.ready_sample(most integer) RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
DECLARE
  every constant boolean := {schema}.sees_every_tenant();
  tenant constant text := {schema}.current_tenant();
  queue text;
BEGIN
  LOOP
    SELECT r.queue_name INTO queue FROM {schema}.ready_jobs r
    WHERE r.queue_name > coalesce(queue, '') ORDER BY r.queue_name LIMIT 1;
    EXIT WHEN NOT FOUND;
    IF every THEN
      RETURN QUERY SELECT r.job_id FROM {schema}.ready_jobs r WHERE r.queue_name = queue LIMIT most;
    ELSE
      RETURN QUERY SELECT r.job_id FROM {schema}.ready_jobs r
        WHERE r.queue_name = queue AND r.tenant_id = tenant LIMIT most;
    END IF;
  END LOOP;
END
$$;

-- How many jobs that the caller may see wait for their time, counted up to a bound of the caller's timers.
CREATE FUNCTION {schema}.count_delayed(most integer, OUT delayed integer, OUT looked integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
AS $$
  SELECT (count(*) FILTER (WHERE t.kind = 'run'))::integer, count(*)::integer FROM (
    (SELECT kind FROM {schema}.timers WHERE (SELECT {schema}.sees_every_tenant()) LIMIT most)
    UNION ALL
    (SELECT kind FROM {schema}.timers WHERE NOT (SELECT {schema}.sees_every_tenant())
      AND tenant_id = (SELECT {schema}.current_tenant()) LIMIT most)
  ) t
$$;

REVOKE ALL ON FUNCTION {schema}.sees_every_tenant, {schema}.running_jobs, {schema}.waiting_jobs,
  {schema}.queue_depths, {schema}.ready_sample, {schema}.count_delayed FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.sees_every_tenant, {schema}.running_jobs, {schema}.waiting_jobs,
  {schema}.queue_depths, {schema}.ready_sample, {schema}.count_delayed TO {role}_worker, {role}_server;

-- A server that others can reach must have somebody to let in.
CREATE FUNCTION {schema}.has_tokens() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM {schema}.tokens t WHERE t.revoked_at IS NULL)
$$;
REVOKE ALL ON FUNCTION {schema}.has_tokens FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.has_tokens TO {role}_server;

-- Queues belong to no tenant: whoever sees every tenant may pause one, nobody who acts for a tenant.
CREATE FUNCTION {schema}.pause_queue(p_queue text, p_paused boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT {schema}.sees_every_tenant() THEN
    RAISE EXCEPTION 'only somebody who sees every tenant may pause a queue' USING ERRCODE = 'insufficient_privilege';
  END IF;
  INSERT INTO {schema}.queues AS q (queue_name, paused_at)
  VALUES (p_queue, CASE WHEN p_paused THEN clock_timestamp() END)
  ON CONFLICT (queue_name) DO UPDATE SET paused_at = CASE WHEN p_paused THEN coalesce(q.paused_at, excluded.paused_at) END;
  PERFORM {schema}.wake(p_queue);
END
$$;
REVOKE ALL ON FUNCTION {schema}.pause_queue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.pause_queue TO {role}_worker, {role}_server;
