-- What people look at: lists by any filter, and what has been going on. docs/decisions/0014-listing-jobs.md

-- Workers see every tenant. A server may answer somebody who does; like the tenant, it says so for one transaction.
CREATE FUNCTION {schema}.sees_every_tenant() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(current_setting('{schema}.every_tenant', true), '') = 'on'
    OR pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), '{role}_worker', 'USAGE')
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
  DELETE FROM {schema}.dead_jobs d
  WHERE d.tenant_id = OLD.tenant_id AND d.state = OLD.state::text AND d.job_id = OLD.job_id;
  IF NEW.state IN ('FAILED_TERMINAL', 'CANCELLED') THEN
    INSERT INTO {schema}.dead_jobs (job_id, tenant_id, state)
    VALUES (NEW.job_id, NEW.tenant_id, NEW.state::text) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER jobs_dead AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (
  (OLD.state IN ('FAILED_TERMINAL', 'CANCELLED')) <> (NEW.state IN ('FAILED_TERMINAL', 'CANCELLED')))
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
    EXECUTE format('CREATE POLICY every_row ON {schema}.%I TO {role}_server '
      'USING ((SELECT {schema}.sees_every_tenant()))', name);
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

-- The waiting jobs that the caller may see: ready, waiting for their time, or held. NULL when so many wait that the
-- newest jobs are better looked for among all.
CREATE FUNCTION {schema}.waiting_jobs(most integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (SELECT count(*) FROM (SELECT FROM {schema}.ready_jobs LIMIT most + 1) r) > most
    OR (SELECT count(*) FROM (SELECT FROM {schema}.timers LIMIT most + 1) t) > most
  THEN
    RETURN NULL;
  END IF;
  RETURN ARRAY(
    SELECT w.job_id FROM (
      SELECT r.job_id, r.tenant_id FROM {schema}.ready_jobs r
      UNION SELECT t.job_id, t.tenant_id FROM {schema}.timers t
      UNION SELECT j.job_id, j.tenant_id FROM {schema}.jobs j WHERE j.hold_reason IS NOT NULL
    ) w
    WHERE (SELECT {schema}.sees_every_tenant()) OR w.tenant_id = (SELECT {schema}.current_tenant()));
END
$$;

REVOKE ALL ON FUNCTION {schema}.sees_every_tenant, {schema}.running_jobs, {schema}.waiting_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.sees_every_tenant, {schema}.running_jobs, {schema}.waiting_jobs
  TO {role}_worker, {role}_server;
