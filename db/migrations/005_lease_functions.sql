-- Submitting, starting and completing jobs: the only ways in which jobs, attempts and results are inserted. They
-- run as the owner, so the application's roles need no right to insert, and an attempt or a result cannot be
-- written without the change of its job that it belongs to. Each pins the shape of its plan: look-ups by index,
-- whatever the tables hold and whatever pooler is in between (docs/decisions/0004-pinned-plans.md).

CREATE FUNCTION {schema}.current_tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT nullif(current_setting('{schema}.tenant_id', true), '')
$$;

-- Functions that run as the owner see every row; they ask here whether their caller may. A worker serves all
-- tenants, everybody else the one that is set.
CREATE FUNCTION {schema}.check_tenants(tenants text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- SECURITY DEFINER changes current_user, but neither the role that was set nor the login.
  caller constant text := coalesce(nullif(current_setting('role'), 'none'), session_user);
BEGIN
  IF NOT pg_has_role(caller, '{role}_worker', 'USAGE')
    AND tenants IS DISTINCT FROM array_fill({schema}.current_tenant(), ARRAY[cardinality(tenants)])
  THEN
    RAISE EXCEPTION 'a job of another tenant than the one set violates row-level security'
      USING ERRCODE = 'insufficient_privilege';
  END IF;
END
$$;

-- The id a key may stand for: a job without a key of its own has its id for one.
CREATE FUNCTION {schema}.key_as_id(key text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN key ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN key::uuid END
$$;

-- Inserts jobs, makes them ready or sets their timers, and wakes workers; returns the ids of those that are new.
-- ON CONFLICT covers both unique keys: the idempotency key and, for dedupe 'active', the unfinished twin.
CREATE FUNCTION {schema}.enqueue_jobs(
  p_job_ids uuid[], p_tenants text[], p_queues text[], p_types text[], p_keys text[], p_spec_hashes text[],
  p_active_spec_hashes text[], p_priorities integer[], p_max_attempts integer[], p_timeouts integer[],
  p_run_ats timestamptz[], p_delays float8[], p_deadlines timestamptz[], p_times_left float8[],
  p_handler_versions text[], p_replays_of uuid[], p_inputs text[]
) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
BEGIN
  PERFORM {schema}.check_tenants(p_tenants);
  RETURN QUERY
  WITH inserted AS (
    INSERT INTO {schema}.jobs (
      job_id, tenant_id, queue_name, job_type, idempotency_key, spec_hash, active_spec_hash, priority,
      max_attempts, timeout_seconds, run_after, deadline, handler_version, replay_of, input_payload)
    SELECT j.job_id, j.tenant_id, j.queue_name, j.job_type, coalesce(j.key, j.job_id::text), j.spec_hash,
      j.active_spec_hash, j.priority, j.max_attempts, j.timeout_seconds,
      coalesce(j.run_at, clock_timestamp() + make_interval(secs => coalesce(j.delay, 0))),
      coalesce(j.deadline, clock_timestamp() + make_interval(secs => j.time_left)),
      j.handler_version, j.replay_of, j.input::jsonb
    FROM unnest(
      p_job_ids, p_tenants, p_queues, p_types, p_keys, p_spec_hashes, p_active_spec_hashes, p_priorities,
      p_max_attempts, p_timeouts, p_run_ats, p_delays, p_deadlines, p_times_left, p_handler_versions,
      p_replays_of, p_inputs
    ) AS j(job_id, tenant_id, queue_name, job_type, key, spec_hash, active_spec_hash, priority,
      max_attempts, timeout_seconds, run_at, delay, deadline, time_left, handler_version, replay_of, input)
    WHERE j.key IS NULL OR NOT EXISTS (
      SELECT FROM {schema}.jobs other
      WHERE other.job_id = {schema}.key_as_id(j.key) AND other.tenant_id = j.tenant_id
        AND other.idempotency_key = j.key)
    ON CONFLICT DO NOTHING
    RETURNING job_id, tenant_id, queue_name, priority, run_after, deadline, run_after <= clock_timestamp() AS due
  ), ready AS (
    INSERT INTO {schema}.ready_jobs (queue_name, tenant_id, rank, ready_at, job_id)
    SELECT i.queue_name, i.tenant_id,
      CASE WHEN q.ageing_seconds IS NULL THEN -i.priority ELSE 0 END,
      CASE WHEN q.ageing_seconds IS NULL THEN i.run_after
        ELSE i.run_after - make_interval(secs => i.priority * q.ageing_seconds) END,
      i.job_id
    FROM inserted i LEFT JOIN {schema}.queues q ON q.queue_name = i.queue_name
    WHERE i.due
  ), timed AS (
    INSERT INTO {schema}.timers (due_at, job_id, kind, tenant_id)
    SELECT i.run_after, i.job_id, 'run', i.tenant_id FROM inserted i WHERE NOT i.due
    UNION ALL
    SELECT i.deadline, i.job_id, 'deadline', i.tenant_id FROM inserted i WHERE i.deadline IS NOT NULL
  ), woken AS MATERIALIZED (
    SELECT {schema}.wake(w.queue_name) FROM (SELECT DISTINCT i.queue_name FROM inserted i WHERE i.due) w
  )
  SELECT i.job_id FROM inserted i WHERE (SELECT count(*) FROM woken) >= 0;
END
$$;

-- What every way into a job returns of it.
CREATE TYPE {schema}.lease AS (
  job_id uuid,
  attempt_id uuid,
  attempt_no integer,
  interruptions integer,
  max_attempts integer,
  tenant_id text,
  queue_name text,
  job_type text,
  idempotency_key text,
  priority integer,
  ready_since float8,
  timeout_seconds integer,
  deadline timestamptz,
  deadline_in_seconds float8,
  handler_version text,
  state text,
  input_payload jsonb
);

-- Takes jobs from the heads of the given slices.
--
-- Locks: ready rows (SKIP LOCKED), then their jobs. Whoever holds a job and wants its ready row skips locked
-- ones too, so the two orders never wait for each other in a circle.
--
-- Each slice is read from its remembered head on: under a snapshot held elsewhere the entries before it are
-- dead but cannot be removed, and walking them is what kills other queues.
--
-- A ready row is consumed even when its job turns out not to be eligible: then a timer (run_after, deadline)
-- or a trigger (hold, cancel) is responsible for the job, see 004_guards.sql.
--
-- ctid = ANY (ARRAY(…)) and job_id = ANY (ARRAY(…)): exactly the picked rows under every plan, where
-- IN (SELECT … LIMIT) may run its subquery more than once and claim more.
CREATE FUNCTION {schema}.claim_jobs(
  p_queues text[], p_tenants text[], p_quotas integer[], p_ranks integer[], p_ready_ats timestamptz[],
  p_head_ids uuid[], p_worker_id text, p_lease_seconds float8, p_claim_id uuid
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
   WITH slice AS MATERIALIZED (
     SELECT s.* FROM unnest(p_queues, p_tenants, p_quotas, p_ranks, p_ready_ats, p_head_ids)
       AS s(queue_name, tenant_id, quota, head_rank, head_ready_at, head_job_id)
     WHERE NOT EXISTS (
       SELECT FROM {schema}.queues q WHERE q.queue_name = s.queue_name AND q.paused_at IS NOT NULL)
   ), picked AS MATERIALIZED (
     SELECT r.row_id, r.job_id
     FROM slice CROSS JOIN LATERAL (
       SELECT ready.ctid AS row_id, ready.job_id
       FROM {schema}.ready_jobs ready
       WHERE ready.queue_name = slice.queue_name AND ready.tenant_id = slice.tenant_id
         AND (ready.rank, ready.ready_at, ready.job_id)
           >= (slice.head_rank, slice.head_ready_at, slice.head_job_id)
       ORDER BY ready.rank, ready.ready_at, ready.job_id
       LIMIT slice.quota
       FOR UPDATE SKIP LOCKED
     ) r
   ), consumed AS (
     DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (ARRAY(SELECT row_id FROM picked))
   ), claimed AS (
     UPDATE {schema}.jobs j SET
       state = 'RUNNING', attempt_count = j.attempt_count + 1, current_attempt_id = gen_random_uuid(),
       worker_id = p_worker_id, lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds),
       started_at = coalesce(j.started_at, clock_timestamp()), updated_at = clock_timestamp()
     WHERE j.job_id = ANY (ARRAY(SELECT job_id FROM picked))
       AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
       AND j.run_after <= clock_timestamp() AND (j.deadline IS NULL OR j.deadline > clock_timestamp())
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         extract(epoch FROM j.run_after)::float8 AS ready_since, j.timeout_seconds, j.deadline,
         extract(epoch FROM j.deadline - clock_timestamp())::float8 AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.input_payload
   ), opened AS (
     INSERT INTO {schema}.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id)
     SELECT job_id, attempt_id, attempt_no, tenant_id, p_worker_id FROM claimed
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds),
       array_agg(DISTINCT queue_name), array_agg(job_id) FROM claimed
     HAVING count(*) > 0
   )
   SELECT * FROM claimed;
END
$$;

-- Compare-and-swap by id, under the same rule of eligibility as any claim: waiting, due, not held, not past its
-- deadline, queue not paused; or running on a lease that ran out, with attempts left and no cancel requested.
-- Locks: the job; its ready row only if nobody else holds it (that claim will then find the job taken).
CREATE FUNCTION {schema}.acquire_job(
  p_job_id uuid, p_worker_id text, p_lease_seconds float8, p_claim_id uuid
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
   WITH won AS (
     UPDATE {schema}.jobs j SET
       state = 'RUNNING', attempt_count = j.attempt_count + 1, current_attempt_id = gen_random_uuid(),
       worker_id = p_worker_id, lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds),
       started_at = coalesce(j.started_at, clock_timestamp()), updated_at = clock_timestamp()
     WHERE j.job_id = p_job_id
       AND (j.deadline IS NULL OR j.deadline > clock_timestamp())
       AND NOT EXISTS (
         SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL)
       AND (
         (j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
           AND j.run_after <= clock_timestamp())
         OR (j.state = 'RUNNING' AND j.lease_expires_at <= clock_timestamp() AND j.cancel_requested_at IS NULL
           AND j.attempt_count - j.interruptions < j.max_attempts)
       )
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         extract(epoch FROM j.run_after)::float8 AS ready_since, j.timeout_seconds, j.deadline,
         extract(epoch FROM j.deadline - clock_timestamp())::float8 AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.input_payload
   ), consumed AS (
     DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (ARRAY(
       SELECT r.ctid FROM won JOIN {schema}.jobs j ON j.job_id = won.job_id JOIN {schema}.ready_jobs r
         ON r.queue_name = j.queue_name AND r.tenant_id = j.tenant_id AND r.rank = -j.priority
         AND r.ready_at = j.run_after AND r.job_id = j.job_id
       FOR UPDATE OF r SKIP LOCKED))
   ), closed AS (
     UPDATE {schema}.attempts a SET
       status = 'LEASE_EXPIRED', ended_at = clock_timestamp(), cause = coalesce(a.cause, 'LEASE_EXPIRED')
     FROM won WHERE a.job_id = won.job_id AND a.attempt_no = won.attempt_no - 1 AND a.status = 'RUNNING'
   ), opened AS (
     INSERT INTO {schema}.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id)
     SELECT job_id, attempt_id, attempt_no, tenant_id, p_worker_id FROM won
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds), ARRAY[queue_name], ARRAY[job_id]
     FROM won
   )
   SELECT * FROM won;
END
$$;

-- Finds leases that ran out through the claims' hints, and ends or restarts their jobs: attempts used up,
-- deadline passed or cancel requested end the job, whoever finds it; the rest gets a new attempt here, up to the
-- limit, if this worker serves the queue. The old attempt is closed in the same statement.
--
-- Locks: claims (SKIP LOCKED), jobs (SKIP LOCKED), then attempts.
-- Hints of queues that this worker does not serve are left to those who do for ten seconds: to look at a hint is
-- to move it, and it must not be moved away from under them for ever.
-- A hint whose jobs are all done is deleted; otherwise it moves to the earliest lease still running.
CREATE FUNCTION {schema}.reclaim_jobs(
  p_queues text[], p_worker_id text, p_limit integer, p_lease_seconds float8, p_claim_id uuid
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
   WITH due AS MATERIALIZED (
     SELECT c.claim_id, c.job_ids FROM {schema}.claims c
     WHERE c.expires_at <= (SELECT clock_timestamp())
       AND (c.queue_names && p_queues
         OR c.expires_at <= (SELECT clock_timestamp() - interval '10 seconds'))
     ORDER BY c.expires_at LIMIT 50 FOR UPDATE SKIP LOCKED
   ), running AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.lease_expires_at, j.priority,
       j.lease_expires_at <= clock_timestamp() AS expired,
       j.queue_name = ANY (p_queues) AND NOT EXISTS (
         SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL) AS ours,
       CASE
         WHEN j.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
         WHEN j.deadline <= clock_timestamp() THEN 'DEADLINE_EXCEEDED'
         WHEN j.attempt_count - j.interruptions >= j.max_attempts THEN 'EXHAUSTED'
       END AS ending
     FROM {schema}.jobs j
     WHERE j.job_id = ANY (ARRAY(SELECT unnest(d.job_ids) FROM due d)) AND j.state = 'RUNNING'
     FOR UPDATE OF j SKIP LOCKED
   ), chosen AS MATERIALIZED (
     SELECT r.job_id, r.attempt_count, r.ending FROM running r WHERE r.expired AND r.ending IS NOT NULL
     UNION ALL
     (SELECT r.job_id, r.attempt_count, NULL FROM running r
      WHERE r.expired AND r.ending IS NULL AND r.ours
      ORDER BY r.priority DESC, r.lease_expires_at LIMIT p_limit)
   ), closed AS (
     UPDATE {schema}.attempts a SET
       status = 'LEASE_EXPIRED', ended_at = clock_timestamp(), cause = coalesce(a.cause, 'LEASE_EXPIRED')
     FROM chosen c WHERE a.job_id = c.job_id AND a.attempt_no = c.attempt_count AND a.status = 'RUNNING'
     RETURNING a.job_id, a.cause
   ), changed AS (
     UPDATE {schema}.jobs j SET
       state = (CASE WHEN c.ending IS NULL THEN 'RUNNING' WHEN c.ending = 'CANCELLED' THEN 'CANCELLED'
         ELSE 'FAILED_TERMINAL' END)::{schema}.oracle_job_state,
       attempt_count = j.attempt_count + (c.ending IS NULL)::integer,
       current_attempt_id = CASE WHEN c.ending IS NULL THEN gen_random_uuid() ELSE j.current_attempt_id END,
       worker_id = CASE WHEN c.ending IS NULL THEN p_worker_id END,
       lease_expires_at = CASE WHEN c.ending IS NULL THEN clock_timestamp() + make_interval(secs => p_lease_seconds) END,
       completed_at = CASE WHEN c.ending IS NOT NULL THEN clock_timestamp() END,
       active_spec_hash = CASE WHEN c.ending IS NULL THEN j.active_spec_hash END,
       updated_at = clock_timestamp(),
       error_json = jsonb_build_object('retryable', c.ending IS NULL) || CASE
         WHEN c.ending = 'DEADLINE_EXCEEDED' THEN
           '{"code": "DEADLINE_EXCEEDED", "message": "the deadline passed while the attempt was lost"}'::jsonb
         WHEN closed.cause = 'WORKER_CRASHED' THEN
           '{"code": "WORKER_CRASHED", "message": "the process that ran the attempt died"}'::jsonb
         ELSE '{"code": "LEASE_EXPIRED", "message": "the lease ran out without renewal"}'::jsonb END
     FROM chosen c JOIN closed ON closed.job_id = c.job_id
     WHERE j.job_id = c.job_id
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         extract(epoch FROM j.run_after)::float8 AS ready_since, j.timeout_seconds, j.deadline,
         extract(epoch FROM j.deadline - clock_timestamp())::float8 AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.input_payload
   ), opened AS (
     INSERT INTO {schema}.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id)
     SELECT job_id, attempt_id, attempt_no, tenant_id, p_worker_id FROM changed WHERE state = 'RUNNING'
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds),
       array_agg(DISTINCT queue_name), array_agg(job_id)
     FROM changed WHERE state = 'RUNNING' HAVING count(*) > 0
   ), still AS MATERIALIZED (
     SELECT d.claim_id, min(greatest(r.lease_expires_at, clock_timestamp() + interval '1 second')) AS expires_at
     FROM due d CROSS JOIN unnest(d.job_ids) AS member(job_id)
     JOIN {schema}.jobs r ON r.job_id = member.job_id AND r.state = 'RUNNING'
     WHERE NOT EXISTS (SELECT FROM chosen c WHERE c.job_id = r.job_id)
     GROUP BY d.claim_id
   ), moved AS (
     UPDATE {schema}.claims c SET expires_at = s.expires_at FROM still s WHERE c.claim_id = s.claim_id
   ), removed AS (
     DELETE FROM {schema}.claims c
     WHERE c.claim_id = ANY (ARRAY(SELECT claim_id FROM due EXCEPT SELECT claim_id FROM still))
   )
   SELECT * FROM changed;
END
$$;

-- Completes jobs and returns the attempts that did. The fence comes first: what does not match job, attempt and
-- RUNNING is not in `won`, and only what is in `won` gets a result and a closed attempt.
-- Locks: the jobs, then their attempts.
CREATE FUNCTION {schema}.settle_succeeded(
  p_job_ids uuid[], p_attempt_ids uuid[], p_payloads text[], p_content_hashes text[], p_finished_claims uuid[]
) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
   WITH won AS (
     UPDATE {schema}.jobs j SET
       state = 'SUCCEEDED', completed_at = clock_timestamp(), updated_at = clock_timestamp(),
       lease_expires_at = NULL, worker_id = NULL, error_json = NULL, active_spec_hash = NULL
     FROM unnest(p_job_ids, p_attempt_ids, p_payloads, p_content_hashes) AS o(job_id, attempt_id, payload, content_hash)
     WHERE j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.tenant_id,
       o.payload, o.content_hash
   ), stored AS (
     INSERT INTO {schema}.results (job_id, attempt_id, tenant_id, content_hash, result_payload)
     SELECT job_id, attempt_id, tenant_id, content_hash, payload::jsonb FROM won
   ), closed AS (
     UPDATE {schema}.attempts a SET status = 'SUCCEEDED', ended_at = clock_timestamp()
     FROM won WHERE a.job_id = won.job_id AND a.attempt_no = won.attempt_no
   ), done_hints AS (
     DELETE FROM {schema}.claims WHERE claim_id = ANY (p_finished_claims)
   )
   SELECT attempt_id FROM won;
END
$$;
