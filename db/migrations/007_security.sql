-- Who may do what. Row-level security is forced, so it binds the owner too; owner and worker have an explicit
-- policy for all rows, server and tenant see the rows of current_tenant().

GRANT USAGE ON SCHEMA {schema} TO {role}_worker, {role}_server, {role}_tenant;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'jobs', 'past_attempts', 'attempt_reports', 'attempt_logs', 'results', 'artifacts', 'ready_jobs', 'timers', 'audit'
  ] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant())) '
      'WITH CHECK (tenant_id = (SELECT {schema}.current_tenant()))', name);
  END LOOP;
  -- Claim and outbox rows name jobs of any tenant: workers only. Who is whose login is written by administrators,
  -- and read by current_tenant() and doctor.
  FOREACH name IN ARRAY ARRAY['claims', 'outbox', 'tenant_logins'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
END
$$;

-- Jobs and results are inserted by the functions of 005 and 006 only, reports, logs and artifacts by those of 008.
GRANT SELECT ON {schema}.jobs TO {role}_worker, {role}_server, {role}_tenant;

-- What a job is (type, input, hash, key, tenant, queue) never changes after its insert.
GRANT UPDATE (
  state, run_after, started_at, completed_at, updated_at, lease_expires_at, cancel_requested_at,
  current_attempt_id, attempt_count, max_attempts, interruptions, worker_id, hold_reason, error_json,
  active_spec_hash, priority
) ON {schema}.jobs TO {role}_worker;
GRANT UPDATE (
  state, run_after, completed_at, updated_at, cancel_requested_at, max_attempts, hold_reason, error_json,
  active_spec_hash, priority
) ON {schema}.jobs TO {role}_server;

GRANT SELECT ON {schema}.attempts, {schema}.past_attempts, {schema}.attempt_reports, {schema}.attempt_logs,
  {schema}.results, {schema}.artifacts TO {role}_worker, {role}_server, {role}_tenant;
-- What came too late is kept beside its attempt.
GRANT UPDATE (status, late_output) ON {schema}.past_attempts TO {role}_worker;

-- The view reads with its caller's rights in any case (001_init.sql); where that can be said, it is said.
DO $$
BEGIN
  IF current_setting('server_version_num')::integer >= 150000 THEN
    ALTER VIEW {schema}.attempts SET (security_invoker = true);
  END IF;
END
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.ready_jobs, {schema}.timers, {schema}.claims, {schema}.outbox, {schema}.workers
  TO {role}_worker;
GRANT SELECT ON {schema}.ready_jobs, {schema}.timers, {schema}.workers TO {role}_server;
GRANT SELECT, INSERT, UPDATE ON {schema}.queues TO {role}_worker;
GRANT SELECT ON {schema}.queues TO {role}_server;
-- When, and by which login, is for the database to say.
GRANT SELECT, INSERT (tenant_id, job_id, action, details) ON {schema}.audit TO {role}_worker, {role}_server;
GRANT SELECT ON {schema}.tenant_logins TO {role}_worker;

-- Trigger functions cannot be called. What starts and completes jobs is the worker's alone; enqueue_jobs and
-- enqueue_alike trust the hashes and sizes they are given, so other languages and tenants use enqueue. A policy's
-- function is called with the rights of whoever reads the table.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}_worker;
GRANT EXECUTE ON FUNCTION {schema}.current_tenant, {schema}.all_attempts, {schema}.enqueue TO {role}_server, {role}_tenant;
GRANT EXECUTE ON FUNCTION {schema}.enqueue_jobs, {schema}.enqueue_alike, {schema}.key_as_id TO {role}_server;
