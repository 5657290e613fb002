-- Who may do what. Row-level security is forced, so it binds the owner too; owner and worker have an explicit
-- policy for all rows, server and tenant see the rows of the tenant named by a transaction-local setting.

GRANT USAGE ON SCHEMA {schema} TO {role}_worker, {role}_server, {role}_tenant;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['jobs', 'attempts', 'results', 'artifacts', 'ready_jobs', 'timers', 'audit'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant())) '
      'WITH CHECK (tenant_id = (SELECT {schema}.current_tenant()))', name);
  END LOOP;
  -- Claim rows list jobs of any tenant: workers only.
  ALTER TABLE {schema}.claims ENABLE ROW LEVEL SECURITY;
  ALTER TABLE {schema}.claims FORCE ROW LEVEL SECURITY;
  CREATE POLICY all_rows ON {schema}.claims TO {role}_owner, {role}_worker USING (true) WITH CHECK (true);
END
$$;

-- Jobs, attempts and results are inserted by the functions of 005 only.
GRANT SELECT ON {schema}.jobs TO {role}_worker, {role}_server, {role}_tenant;

-- What a job is (type, input, hash, key, tenant, queue) never changes after its insert.
GRANT UPDATE (
  state, run_after, started_at, completed_at, updated_at, lease_expires_at, cancel_requested_at,
  current_attempt_id, attempt_count, max_attempts, interruptions, worker_id, hold_reason, error_json,
  active_spec_hash, priority
) ON {schema}.jobs TO {role}_worker;
GRANT UPDATE (
  state, run_after, completed_at, updated_at, cancel_requested_at, max_attempts, error_json, active_spec_hash,
  priority
) ON {schema}.jobs TO {role}_server;

GRANT SELECT, UPDATE (status, ended_at, cause, error_message, error_json, late_output)
  ON {schema}.attempts TO {role}_worker;
GRANT SELECT ON {schema}.results TO {role}_worker;
GRANT SELECT, INSERT ON {schema}.artifacts TO {role}_worker;
GRANT SELECT ON {schema}.attempts, {schema}.results, {schema}.artifacts TO {role}_server, {role}_tenant;

GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.ready_jobs, {schema}.timers, {schema}.claims, {schema}.workers
  TO {role}_worker;
GRANT SELECT ON {schema}.ready_jobs, {schema}.timers, {schema}.workers TO {role}_server;
GRANT SELECT, INSERT, UPDATE ON {schema}.queues TO {role}_worker;
GRANT SELECT ON {schema}.queues TO {role}_server, {role}_tenant;
GRANT SELECT, INSERT ON {schema}.audit TO {role}_worker, {role}_server;

-- Trigger functions cannot be called; of the rest, what starts and completes jobs is the worker's alone, and
-- enqueue_jobs trusts the hashes and sizes it is given, so other languages and tenants use enqueue.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}_worker, {role}_server, {role}_tenant;
REVOKE EXECUTE ON FUNCTION
  {schema}.claim_jobs, {schema}.acquire_job, {schema}.reclaim_jobs, {schema}.settle_succeeded
  FROM {role}_server, {role}_tenant;
REVOKE EXECUTE ON FUNCTION {schema}.enqueue_jobs FROM {role}_tenant;
