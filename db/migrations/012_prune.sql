-- Forgetting finished jobs, with everything that hangs on them. The only way in which jobs, attempts and results are
-- deleted: it runs as the owner, so no role of the application needs the right, and it decides itself what may go.
-- docs/operations.md says what is kept.

-- A job that others were made from. The column never changes and is NULL on a job's ordinary way.
CREATE INDEX idx_jobs_replay_of ON {schema}.jobs (replay_of) WHERE replay_of IS NOT NULL;

-- The first id that a program could have minted at a moment: ids of version 7 begin with their time.
CREATE FUNCTION {schema}.first_id_at(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Looks at up to p_limit jobs behind p_after, in the order of their ids, and deletes those that may go; with p_dry_run
-- it only counts them. No index on state or time is needed for that: ids of programs grow with time, so the old ones
-- come first, and the block of those that are too young is jumped over. Random ids (SQL enqueue) lie around it.
-- next_after is where to go on, NULL at the end. With p_own a tenant's own retention (013_tenants.sql) goes before
-- p_older_than, which is NULL where everybody else's jobs are kept for ever. Ages are those at p_moment, or now.
--
-- Never deleted: what is not finished or held, what has an effect in doubt, the origin of a replay that is
-- unfinished or still reads the origin's artifacts, and for p_key_seconds what was submitted with a key of its own,
-- which protects from a second job.
-- Locks: the jobs that nobody else holds, in a statement of their own, so that the next one sees every replay that was
-- submitted before; whoever submits one holds its origin (check_replays).
CREATE FUNCTION {schema}.prune_jobs(
  p_after uuid, p_limit integer, p_older_than float8, p_key_seconds float8,
  p_states {schema}.oracle_job_state[], p_tenant text, p_dry_run boolean, p_own boolean,
  p_moment timestamptz DEFAULT NULL
) RETURNS TABLE (deleted integer, next_after uuid)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  moment constant timestamptz := coalesce(p_moment, clock_timestamp());
  keys_before constant timestamptz := moment - make_interval(secs => p_key_seconds);
  -- What ended after this is too young for everybody.
  ended_before constant timestamptz := moment - make_interval(secs => CASE
    WHEN p_own THEN least(p_older_than, (SELECT min(t.retention_seconds) FROM {schema}.tenants t))
    ELSE p_older_than END);
  looked uuid[];
  old uuid[];
  last_id uuid;
BEGIN
  looked := ARRAY(SELECT j.job_id FROM {schema}.jobs j WHERE j.job_id > p_after ORDER BY j.job_id LIMIT p_limit);
  old := ARRAY(
    SELECT j.job_id FROM {schema}.jobs j
    WHERE j.job_id = ANY (looked) AND j.state = ANY (p_states)
      AND j.state IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED') AND j.completed_at <= ended_before
      AND j.completed_at <= moment - make_interval(secs => coalesce(
        CASE WHEN p_own THEN (SELECT t.retention_seconds FROM {schema}.tenants t WHERE t.tenant_id = j.tenant_id) END,
        p_older_than))
      AND (p_tenant IS NULL OR j.tenant_id = p_tenant)
      AND (j.idempotency_key = j.job_id::text OR j.completed_at <= keys_before)
    FOR UPDATE SKIP LOCKED);
  old := ARRAY(
    SELECT o.job_id FROM unnest(old) AS o(job_id)
    WHERE NOT EXISTS (
        SELECT FROM {schema}.effects e WHERE e.job_id = o.job_id AND e.state IN ('DISPATCHED', 'IN_DOUBT'))
      AND NOT EXISTS (
        SELECT FROM {schema}.jobs r WHERE r.replay_of = o.job_id AND (
          r.state NOT IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED') OR EXISTS (
            SELECT FROM {schema}.steps s
            WHERE s.job_id = r.job_id AND s.attempt_no = 0 AND s.artifact_id IS NOT NULL))));
  IF NOT p_dry_run THEN
    DELETE FROM {schema}.timers t USING {schema}.jobs j
    WHERE j.job_id = ANY (old) AND t.due_at = j.deadline AND t.job_id = j.job_id AND t.kind = 'deadline';
    DELETE FROM {schema}.dead_jobs d USING {schema}.jobs j
    WHERE j.job_id = ANY (old) AND d.tenant_id = j.tenant_id AND d.state = j.state::text AND d.job_id = j.job_id;
    DELETE FROM {schema}.results WHERE job_id = ANY (old);
    DELETE FROM {schema}.steps WHERE job_id = ANY (old);
    DELETE FROM {schema}.effects WHERE job_id = ANY (old);
    -- Its card, metrics and references to artifacts go with it (016_evolution.sql).
    DELETE FROM {schema}.evolution_jobs WHERE job_id = ANY (old);
    DELETE FROM {schema}.attempt_logs WHERE job_id = ANY (old);
    DELETE FROM {schema}.artifacts WHERE job_id = ANY (old);
    DELETE FROM {schema}.attempt_reports WHERE job_id = ANY (old);
    DELETE FROM {schema}.past_attempts WHERE job_id = ANY (old);
    DELETE FROM {schema}.jobs WHERE job_id = ANY (old);
  END IF;
  deleted := cardinality(old);
  IF cardinality(looked) = p_limit THEN
    last_id := looked[p_limit];
    next_after := CASE
      WHEN last_id > {schema}.first_id_at(ended_before) AND last_id < {schema}.first_id_at(clock_timestamp())
      THEN {schema}.first_id_at(clock_timestamp() + interval '1 minute') ELSE last_id END;
  END IF;
  RETURN NEXT;
END
$$;

-- How far the automatic pass has come: one row, which whoever prunes holds, so that there is one at a time.
CREATE TABLE {schema}.retention (
  only_row boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
  position uuid NOT NULL,
  -- In the pass that goes on.
  deleted bigint NOT NULL DEFAULT 0,
  -- A pass judges by the moment of its beginning: it would else run after the jobs that become old meanwhile, and where
  -- many come it would never get back to those that it has passed by.
  began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  next_pass_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO {schema}.retention (position) VALUES ('00000000-0000-0000-0000-000000000000');

-- One small step of the pass; no row when it is somebody else's turn, not yet time, or nothing is to be forgotten.
-- pass_deleted is set with the last step of a pass: how many jobs it deleted in all.
CREATE FUNCTION {schema}.prune_step(
  p_limit integer, p_older_than float8, p_key_seconds float8, p_pause_seconds float8
) RETURNS TABLE (deleted integer, pass_deleted bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first constant uuid := '00000000-0000-0000-0000-000000000000';
  pass {schema}.retention;
  step record;
BEGIN
  IF p_older_than IS NULL AND NOT EXISTS (SELECT FROM {schema}.tenants t WHERE t.retention_seconds IS NOT NULL) THEN
    RETURN;
  END IF;
  SELECT r.* INTO pass FROM {schema}.retention r
  WHERE r.next_pass_at <= clock_timestamp() FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF pass.position = first THEN
    pass.began_at := clock_timestamp();
  END IF;
  SELECT p.* INTO step FROM {schema}.prune_jobs(pass.position, p_limit, p_older_than, p_key_seconds,
    ARRAY['SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED']::{schema}.oracle_job_state[], NULL, false, true,
    pass.began_at) p;
  deleted := step.deleted;
  IF step.next_after IS NULL THEN
    pass_deleted := pass.deleted + step.deleted;
    UPDATE {schema}.retention SET position = first, deleted = 0,
      next_pass_at = clock_timestamp() + make_interval(secs => p_pause_seconds);
  ELSE
    UPDATE {schema}.retention SET position = step.next_after, deleted = pass.deleted + step.deleted,
      began_at = pass.began_at;
  END IF;
  RETURN NEXT;
END
$$;

-- Whoever prunes also vacuums what it leaves behind, and the narrow tables that every job passes through: autovacuum comes
-- once a minute at best, and at ten thousand jobs a second that is a lot of dead rows. Older servers know no such right; there
-- it is autovacuum's alone.
DO $$
BEGIN
  IF current_setting('server_version_num')::integer >= 170000 THEN
    GRANT MAINTAIN ON {schema}.ready_jobs, {schema}.timers, {schema}.claims, {schema}.outbox, {schema}.jobs,
      {schema}.results, {schema}.past_attempts, {schema}.attempt_reports, {schema}.attempt_logs TO {role}_worker;
  END IF;
END
$$;

-- Written by the function only; workers may look how far it is.
GRANT SELECT ON {schema}.retention TO {role}_worker;
REVOKE ALL ON FUNCTION {schema}.first_id_at, {schema}.prune_jobs, {schema}.prune_step FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.prune_jobs, {schema}.prune_step TO {role}_worker;
