-- How attempts end other than by success, and what people decide about jobs that are held. Whatever ends an attempt
-- turns its DISPATCHED effects IN_DOUBT; where one of them is unsafe, the job is held. Each function locks the jobs in
-- a statement of its own: the next one's snapshot then has every intent that was committed while it waited.

-- Writes failures, releases, snoozes, cancels and holds, and returns the attempts that won.
-- `decided` works out what follows for each job that is still this attempt's; the rest only writes it.
-- Locks: the jobs, then their effects.
CREATE FUNCTION {schema}.settle_others(p_outcomes jsonb, p_free_interruptions integer)
RETURNS TABLE (attempt_id uuid, state text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM jsonb_to_recordset(p_outcomes) AS o(job_id uuid, attempt_id uuid)
  JOIN {schema}.jobs j ON j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
  ORDER BY j.job_id FOR UPDATE OF j;
  RETURN QUERY
   WITH outcome AS MATERIALIZED (
     SELECT * FROM jsonb_to_recordset(p_outcomes) AS o(
       job_id uuid, attempt_id uuid, kind text, delay_seconds float8, cause text, error jsonb, hold_reason text)
   ), fenced AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.tenant_id, j.worker_id, j.attempt_version, j.attempt_started_at,
       o.attempt_id, o.kind, o.delay_seconds, o.cause, o.error, o.hold_reason,
       j.cancel_requested_at IS NOT NULL AS cancelled,
       j.attempt_count - j.interruptions >= j.max_attempts AS exhausted,
       o.kind = 'snoozed' OR (o.kind = 'held' AND o.error IS NULL) OR (o.kind = 'released' AND (
         SELECT count(*) FROM {schema}.past_attempts a
         WHERE a.job_id = j.job_id AND a.status = 'RELEASED' AND a.cause <> 'SNOOZED') < p_free_interruptions) AS free,
       EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id AND e.kind = 'unsafe'
         AND e.state IN ('DISPATCHED', 'IN_DOUBT')) AS unsafe_doubt
     FROM outcome o JOIN {schema}.jobs j
       ON j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
     FOR UPDATE OF j
   ), decided AS MATERIALIZED (
     SELECT f.*, (CASE
       WHEN f.kind = 'cancelled' OR (f.cancelled AND f.kind <> 'terminal') THEN 'CANCELLED'
       WHEN f.free THEN 'PENDING'
       WHEN f.kind = 'held' OR (f.unsafe_doubt AND NOT f.cancelled) THEN 'FAILED_RETRYABLE'
       WHEN f.exhausted OR f.kind = 'terminal' THEN 'FAILED_TERMINAL'
       WHEN f.kind = 'released' THEN 'PENDING'
       ELSE 'FAILED_RETRYABLE' END)::{schema}.oracle_job_state AS next_state
     FROM fenced f
   ), doubted AS (
     UPDATE {schema}.effects e SET state = 'IN_DOUBT', in_doubt_at = clock_timestamp()
     FROM decided d WHERE e.job_id = d.job_id AND e.state = 'DISPATCHED'
   ), won AS (
     UPDATE {schema}.jobs j SET
       state = d.next_state, lease_expires_at = NULL, worker_id = NULL, attempt_version = NULL,
       attempt_started_at = NULL, updated_at = clock_timestamp(),
       interruptions = j.interruptions + d.free::integer,
       hold_reason = CASE WHEN d.next_state NOT IN ('PENDING', 'FAILED_RETRYABLE') THEN NULL
         WHEN d.unsafe_doubt THEN 'effect in doubt' ELSE d.hold_reason END,
       error_json = coalesce(d.error, j.error_json, CASE WHEN d.next_state IN ('FAILED_TERMINAL', 'FAILED_RETRYABLE')
         THEN jsonb_build_object('code', d.cause, 'message', 'handed back too often', 'retryable', false) END),
       run_after = CASE WHEN d.next_state IN ('PENDING', 'FAILED_RETRYABLE')
         THEN clock_timestamp() + make_interval(secs => d.delay_seconds) ELSE j.run_after END,
       completed_at = CASE WHEN d.next_state IN ('FAILED_TERMINAL', 'CANCELLED') THEN clock_timestamp() END,
       active_spec_hash = CASE WHEN d.next_state IN ('PENDING', 'FAILED_RETRYABLE') THEN j.active_spec_hash END
     FROM decided d WHERE j.job_id = d.job_id
   ), closed AS (
     INSERT INTO {schema}.past_attempts (job_id, attempt_no, attempt_id, tenant_id, worker_id, handler_version,
       started_at, status, cause, error_json, error_message)
     SELECT d.job_id, d.attempt_count, d.attempt_id, d.tenant_id, d.worker_id, d.attempt_version, d.attempt_started_at,
       (CASE WHEN d.error IS NOT NULL THEN 'FAILED' WHEN d.kind = 'cancelled'
         THEN 'CANCELLED' ELSE 'RELEASED' END)::{schema}.oracle_attempt_status,
       d.cause, d.error, d.error ->> 'message'
     FROM decided d
   )
   SELECT d.attempt_id, d.next_state::text FROM decided d;
END
$$;

-- For a worker process that is known to have ended. Jobs it had started are charged: their leases end now, so that
-- the next sweep starts them elsewhere. Jobs it had claimed but not started go back free of charge. A worker id is
-- minted per process, and the caller has seen that process end.
-- Locks: the jobs, then their effects, then claims rows.
CREATE FUNCTION {schema}.free_worker(
  p_worker_id text, p_started uuid[], p_free_interruptions integer, p_cause text
) RETURNS TABLE (started integer, unstarted integer, woken integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  claimed constant uuid[] := ARRAY(
    SELECT unnest(c.job_ids) FROM {schema}.claims c WHERE c.worker_id = p_worker_id);
BEGIN
  PERFORM FROM {schema}.jobs j
  WHERE j.job_id = ANY (claimed) AND j.worker_id = p_worker_id AND j.state = 'RUNNING'
  ORDER BY j.job_id FOR UPDATE OF j;
  RETURN QUERY
   WITH held AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.current_attempt_id, j.tenant_id, j.worker_id, j.attempt_version,
       j.attempt_started_at, j.job_id = ANY (p_started) OR (
         SELECT count(*) FROM {schema}.past_attempts a
         WHERE a.job_id = j.job_id AND a.status = 'RELEASED' AND a.cause <> 'SNOOZED') >= p_free_interruptions AS charged,
       EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id AND e.kind = 'unsafe'
         AND e.state IN ('DISPATCHED', 'IN_DOUBT')) AS unsafe_doubt
     FROM {schema}.jobs j
     WHERE j.job_id = ANY (claimed) AND j.worker_id = p_worker_id AND j.state = 'RUNNING'
     FOR UPDATE OF j
   ), noted AS (
     INSERT INTO {schema}.attempt_reports AS a (job_id, attempt_no, started_at, tenant_id, cause)
     SELECT h.job_id, h.attempt_count, h.attempt_started_at, h.tenant_id, p_cause FROM held h WHERE h.charged
     ON CONFLICT (job_id, attempt_no) DO UPDATE SET cause = excluded.cause
   ), closed AS (
     INSERT INTO {schema}.past_attempts (
       job_id, attempt_no, attempt_id, tenant_id, worker_id, handler_version, started_at, status, cause)
     SELECT h.job_id, h.attempt_count, h.current_attempt_id, h.tenant_id, h.worker_id, h.attempt_version,
       h.attempt_started_at, 'RELEASED', p_cause
     FROM held h WHERE NOT h.charged
   ), doubted AS (
     UPDATE {schema}.effects e SET state = 'IN_DOUBT', in_doubt_at = clock_timestamp()
     FROM held h WHERE e.job_id = h.job_id AND e.state = 'DISPATCHED'
   ), freed AS (
     UPDATE {schema}.jobs j SET
       state = (CASE WHEN h.charged THEN 'RUNNING' ELSE 'PENDING' END)::{schema}.oracle_job_state,
       lease_expires_at = CASE WHEN h.charged THEN least(j.lease_expires_at, clock_timestamp()) END,
       worker_id = CASE WHEN h.charged THEN j.worker_id END,
       attempt_version = CASE WHEN h.charged THEN j.attempt_version END,
       attempt_started_at = CASE WHEN h.charged THEN j.attempt_started_at END,
       run_after = CASE WHEN h.charged THEN j.run_after ELSE clock_timestamp() END,
       interruptions = j.interruptions + (NOT h.charged)::integer,
       hold_reason = CASE WHEN NOT h.charged AND h.unsafe_doubt THEN 'effect in doubt' END,
       updated_at = clock_timestamp()
     FROM held h WHERE j.job_id = h.job_id
   ), hints AS (
     UPDATE {schema}.claims SET expires_at = clock_timestamp() WHERE worker_id = p_worker_id
   ), gone AS (
     DELETE FROM {schema}.workers WHERE worker_id = p_worker_id
   ), woken AS (
     SELECT pg_notify('{schema}_wake', 'sweep') WHERE EXISTS (SELECT FROM held)
   )
   SELECT count(*) FILTER (WHERE h.charged)::integer, count(*) FILTER (WHERE NOT h.charged)::integer,
     (SELECT count(*)::integer FROM woken)
   FROM held h;
END
$$;

-- What a person found out about an effect in doubt: it happened (confirmed), it did not and shall not be tried
-- again (failed), or it did not and shall be sent once more (retry). Lifts the hold when no unsafe doubt is left, and
-- grants one more try where they are used up. Returns the effect's state, and whether this call changed it.
-- To a caller who does not serve its tenant an effect looks absent.
-- Locks: the job, then the effect.
CREATE FUNCTION {schema}.resolve_effect(
  p_effect_id uuid, p_outcome text, p_evidence text, p_response text, p_response_hash text
) RETURNS TABLE (job_id uuid, state text, resolved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  job {schema}.jobs;
  effect {schema}.effects;
BEGIN
  SELECT e.* INTO effect FROM {schema}.effects e
  WHERE e.effect_id = p_effect_id AND {schema}.caller_serves(e.tenant_id);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT j.* INTO job FROM {schema}.jobs j WHERE j.job_id = effect.job_id FOR UPDATE;
  UPDATE {schema}.effects e SET
    state = (CASE p_outcome WHEN 'confirmed' THEN 'CONFIRMED' WHEN 'failed' THEN 'FAILED' WHEN 'retry' THEN 'PLANNED'
      END)::{schema}.oracle_effect_state,
    response = CASE WHEN p_outcome = 'confirmed' THEN p_response::jsonb END,
    response_hash = CASE WHEN p_outcome = 'confirmed' THEN p_response_hash END,
    settled_at = CASE WHEN p_outcome <> 'retry' THEN clock_timestamp() END, in_doubt_at = NULL,
    approved_at = CASE WHEN p_outcome = 'retry' THEN clock_timestamp() ELSE e.approved_at END,
    approved_by = CASE WHEN p_outcome = 'retry' THEN session_user ELSE e.approved_by END,
    resolved_by = session_user, evidence = p_evidence
  WHERE e.effect_id = p_effect_id AND e.state = 'IN_DOUBT';
  IF NOT FOUND THEN
    RETURN QUERY SELECT e.job_id, e.state::text, false FROM {schema}.effects e WHERE e.effect_id = p_effect_id;
    RETURN;
  END IF;
  INSERT INTO {schema}.audit (tenant_id, job_id, action, details) VALUES (job.tenant_id, job.job_id, 'resolve',
    jsonb_build_object('effect_id', p_effect_id, 'name', effect.name, 'outcome', p_outcome, 'evidence', p_evidence));
  UPDATE {schema}.jobs j SET hold_reason = NULL, run_after = clock_timestamp(), updated_at = clock_timestamp(),
    max_attempts = least(1000, greatest(j.max_attempts, j.attempt_count - j.interruptions + 1))
  WHERE j.job_id = job.job_id AND j.hold_reason = 'effect in doubt' AND NOT EXISTS (
    SELECT FROM {schema}.effects e WHERE e.job_id = job.job_id AND e.kind = 'unsafe' AND e.state = 'IN_DOUBT');
  RETURN QUERY SELECT e.job_id, e.state::text, true FROM {schema}.effects e WHERE e.effect_id = p_effect_id;
END
$$;

-- A person's word on a plan: without p_why it is approved and the job goes on; with it the job ends, and so does the
-- plan. Returns whether there was a plan to decide about.
-- Locks: the job, then its effects.
CREATE FUNCTION {schema}.decide_plan(p_job_id uuid, p_why text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  job {schema}.jobs;
BEGIN
  SELECT j.* INTO job FROM {schema}.jobs j
  WHERE j.job_id = p_job_id AND j.hold_reason = 'awaiting approval' AND {schema}.caller_serves(j.tenant_id) FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF p_why IS NULL THEN
    UPDATE {schema}.effects SET approved_at = clock_timestamp(), approved_by = session_user
    WHERE job_id = p_job_id AND state = 'PLANNED' AND approved_at IS NULL;
    UPDATE {schema}.jobs SET hold_reason = NULL, run_after = clock_timestamp(), updated_at = clock_timestamp()
    WHERE job_id = p_job_id;
  ELSE
    UPDATE {schema}.effects SET
      state = 'FAILED', settled_at = clock_timestamp(), resolved_by = session_user, evidence = p_why
    WHERE job_id = p_job_id AND state = 'PLANNED';
    UPDATE {schema}.jobs SET state = 'FAILED_TERMINAL', hold_reason = NULL, completed_at = clock_timestamp(),
      updated_at = clock_timestamp(), active_spec_hash = NULL,
      error_json = jsonb_build_object('code', 'PLAN_REJECTED', 'message', p_why, 'retryable', false)
    WHERE job_id = p_job_id;
  END IF;
  INSERT INTO {schema}.audit (tenant_id, job_id, action, details)
  VALUES (job.tenant_id, p_job_id, CASE WHEN p_why IS NULL THEN 'approve' ELSE 'reject' END,
    jsonb_strip_nulls(jsonb_build_object('why', p_why)));
  RETURN true;
END
$$;

-- Gives a new job what the job it replays had behind it before a step: the values of steps, the outcomes of effects.
-- Runs in the transaction that submits the new job, so that nobody has claimed it. Returns how many rows it took over.
CREATE FUNCTION {schema}.take_over_steps(p_job_id uuid, p_before text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  job {schema}.jobs;
  place integer;
  steps integer;
  effects integer;
BEGIN
  SELECT j.* INTO job FROM {schema}.jobs j
  WHERE j.job_id = p_job_id AND j.state = 'PENDING' AND j.attempt_count = 0 AND {schema}.caller_serves(j.tenant_id)
  FOR UPDATE;
  SELECT s.seq INTO place FROM {schema}.steps s
  WHERE s.job_id = job.replay_of AND s.tenant_id = job.tenant_id AND s.name = p_before;
  INSERT INTO {schema}.steps (job_id, seq, attempt_no, tenant_id, name, value_hash, value, artifact_id)
  SELECT job.job_id, s.seq, 0, s.tenant_id, s.name, s.value_hash, s.value, s.artifact_id
  FROM {schema}.steps s WHERE s.job_id = job.replay_of AND s.tenant_id = job.tenant_id AND s.seq < place;
  GET DIAGNOSTICS steps = ROW_COUNT;
  INSERT INTO {schema}.effects (job_id, effect_id, attempt_no, tenant_id, name, seq, kind, state, request,
    request_hash, response, response_hash, error_json, planned_at, approved_at, approved_by, dispatched_at, settled_at,
    resolved_by, evidence)
  SELECT job.job_id, {schema}.effect_id(job.job_id, e.name), 0, e.tenant_id, e.name, e.seq, e.kind, e.state, e.request,
    e.request_hash, e.response, e.response_hash, e.error_json, e.planned_at, e.approved_at, e.approved_by,
    e.dispatched_at, e.settled_at, session_user, 'as in job ' || job.replay_of
  FROM {schema}.effects e
  WHERE e.job_id = job.replay_of AND e.tenant_id = job.tenant_id AND e.seq < place
    AND e.state IN ('CONFIRMED', 'FAILED');
  GET DIAGNOSTICS effects = ROW_COUNT;
  RETURN steps + effects;
END
$$;

REVOKE ALL ON FUNCTION {schema}.settle_others, {schema}.free_worker, {schema}.resolve_effect, {schema}.decide_plan,
  {schema}.take_over_steps FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.settle_others, {schema}.free_worker TO {role}_worker;
GRANT EXECUTE ON FUNCTION {schema}.resolve_effect, {schema}.decide_plan, {schema}.take_over_steps
  TO {role}_worker, {role}_server;
