-- Starting and completing jobs, the only ways in which that is done and results are inserted. Like those that submit
-- (006_enqueue.sql) they run as the owner, so the application's roles need no right to insert, and a result cannot be
-- written without the change of its job that it belongs to. Each pins the shape of its plan: look-ups by index,
-- whatever the tables hold and whatever pooler is in between (docs/decisions/0004-pinned-plans.md).

-- Whether the caller has the rights of a role. Asked inside functions that run as the owner: SECURITY DEFINER
-- changes current_user, but neither the role that was set nor the login. In PL/pgSQL, like all that every statement
-- asks: a function in SQL that is not inlined is planned anew with each.
CREATE FUNCTION {schema}.caller_has(role name) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), role, 'USAGE');
END
$$;

-- The tenant whose rows the caller may see; NULL matches nothing. The server names one in a setting, for one
-- transaction. A tenant's login has the one it was given: any session may change a setting, none its login.
CREATE FUNCTION {schema}.current_tenant() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF {schema}.caller_has('{role}_server') OR {schema}.caller_has('{role}_worker') THEN
    RETURN nullif(current_setting('{schema}.tenant_id', true), '');
  END IF;
  RETURN (SELECT t.tenant_id FROM {schema}.tenant_logins t WHERE t.login = session_user);
END
$$;

-- Functions that run as the owner see every row, and ask here whether the caller may. A worker serves all tenants,
-- everybody else one. Asked in a WHERE clause, so that another tenant's row looks like one that is not there.
CREATE FUNCTION {schema}.caller_serves(tenant text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT {schema}.caller_has('{role}_worker') OR coalesce(tenant = {schema}.current_tenant(), false)
$$;

-- What every way into a job returns of it.
CREATE TYPE {schema}.lease AS (
  job_id uuid,
  attempt_id uuid,
  attempt_no integer,
  interruptions integer,
  max_attempts {schema}.most_attempts,
  tenant_id {schema}.short_name,
  queue_name {schema}.short_name,
  job_type {schema}.short_name,
  idempotency_key {schema}.job_key,
  priority {schema}.job_priority,
  ready_since float8,
  timeout_seconds {schema}.timeout,
  deadline timestamptz,
  deadline_in_seconds float8,
  handler_version text,
  state text,
  -- The code of the last attempt's error: a job that crashed its process next runs apart from others.
  last_error text,
  -- A replay may have steps to reuse before its first attempt.
  replay_of uuid,
  -- Its end lets another one start, which may be waiting for just that.
  holds_slot boolean,
  input_payload jsonb
);

-- What a worker has, as ready_jobs.pin spells it: type@version.
CREATE FUNCTION {schema}.pins_of(versions jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN ARRAY(SELECT v.key || '@' || v.value FROM jsonb_each_text(versions) v);
END
$$;

-- Takes jobs from the heads of the given slices.
--
-- Locks: ready rows (SKIP LOCKED), then, where limits are met, their tenants' turns, then the jobs. Whoever holds a
-- job and wants its ready row skips locked ones too, so the two orders never wait for each other in a circle.
--
-- Each slice is read from its remembered head on: under a snapshot held elsewhere the entries before it are
-- dead but cannot be removed, and walking them is what kills other queues. What became ready in the last half second
-- is read all the same: of transactions that commit at the same time, one may come behind the head of the other.
--
-- p_versions maps each job type that the worker serves to its handler's version.
--
-- A ready row is consumed even when its job turns out not to be eligible: then a timer (run_after, deadline)
-- or a trigger (hold, cancel) is responsible for the job, see 004_guards.sql.
--
-- A row whose tenant or key has a limit is consumed only if that leaves room, see admit and park in 015_limits.sql. When
-- jobs were parked there is one row more, of state PARKED and nothing else: what lies behind them is worth a look.
--
-- ctid = ANY (…) and job_id = ANY (…): exactly the picked rows under every plan, where IN (SELECT … LIMIT) may
-- run its subquery more than once and claim more.
CREATE FUNCTION {schema}.claim_jobs(
  p_queues text[], p_tenants text[], p_quotas integer[], p_ranks integer[], p_ready_ats timestamptz[],
  p_head_ids uuid[], p_worker_id text, p_lease_seconds float8, p_claim_id uuid, p_versions jsonb
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  lately constant timestamptz := clock_timestamp() - interval '500 milliseconds';
  row_ids tid[];
  capped text[];
  limited boolean;
  candidates {schema}.ready_jobs[];
  admitted record;
  parked integer;
BEGIN
  -- Before the limits are read: count_running waits for it, and so for everybody who does not know a new cap.
  LOCK TABLE {schema}.claims IN ROW EXCLUSIVE MODE;
  WITH slice AS MATERIALIZED (
    SELECT s.queue_name, s.tenant_id, s.quota, s.head_rank,
      least(s.head_ready_at, lately) AS head_ready_at,
      CASE WHEN s.head_ready_at <= lately THEN s.head_job_id ELSE '00000000-0000-0000-0000-000000000000' END
        AS head_job_id,
      t.max_running IS NOT NULL AS capped, t.start_limit IS NOT NULL AS paced
    FROM unnest(p_queues, p_tenants, p_quotas, p_ranks, p_ready_ats, p_head_ids)
      AS s(queue_name, tenant_id, quota, head_rank, head_ready_at, head_job_id)
    LEFT JOIN {schema}.tenants t ON t.tenant_id = s.tenant_id
    WHERE NOT EXISTS (
      SELECT FROM {schema}.queues q WHERE q.queue_name = s.queue_name AND q.paused_at IS NOT NULL)
  ), picked AS MATERIALIZED (
    SELECT r.row_id, slice.capped OR slice.paced OR r.keyed AS limited
    FROM slice CROSS JOIN LATERAL (
      SELECT ready.ctid AS row_id, ready.concurrency_key IS NOT NULL AS keyed
      FROM {schema}.ready_jobs ready
      WHERE ready.queue_name = slice.queue_name AND ready.tenant_id = slice.tenant_id
        AND (ready.rank, ready.ready_at, ready.job_id)
          >= (slice.head_rank, slice.head_ready_at, slice.head_job_id)
        AND (ready.pin IS NULL OR ready.pin = ANY ((SELECT {schema}.pins_of(p_versions))::text[]))
      ORDER BY ready.rank, ready.ready_at, ready.job_id
      LIMIT slice.quota
      FOR UPDATE SKIP LOCKED
    ) r
  )
  SELECT array_agg(row_id), bool_or(limited), ARRAY(SELECT tenant_id FROM slice WHERE capped)
  INTO row_ids, limited, capped FROM picked;
  IF limited THEN
    candidates := ARRAY(SELECT r FROM {schema}.ready_jobs r WHERE r.ctid = ANY (row_ids));
    SELECT * INTO admitted FROM {schema}.admit(candidates);
    parked := {schema}.park(candidates, admitted.turns);
    row_ids := ARRAY(
      SELECT r.ctid FROM {schema}.ready_jobs r WHERE r.ctid = ANY (row_ids) AND r.job_id = ANY (admitted.job_ids));
  END IF;
  RETURN QUERY
   WITH consumed AS (
     DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (row_ids) RETURNING job_id
   ), claimed AS (
     UPDATE {schema}.jobs j SET
       state = 'RUNNING', attempt_count = j.attempt_count + 1, current_attempt_id = gen_random_uuid(),
       worker_id = p_worker_id, attempt_version = p_versions ->> j.job_type,
       lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds),
       started_at = coalesce(j.started_at, clock_timestamp()), attempt_started_at = clock_timestamp(),
       updated_at = clock_timestamp(),
       holds_slot = nullif(j.concurrency_key IS NOT NULL OR j.tenant_id = ANY (capped), false)
     WHERE j.job_id = ANY (ARRAY(SELECT job_id FROM consumed))
       AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
       AND j.run_after <= clock_timestamp() AND (j.deadline IS NULL OR j.deadline > clock_timestamp())
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         date_part('epoch', j.run_after) AS ready_since, j.timeout_seconds, j.deadline,
         date_part('epoch', j.deadline - clock_timestamp()) AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.error_json ->> 'code' AS last_error, j.replay_of, j.holds_slot, j.input_payload
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, tenant_ids, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds),
       p_queues, p_tenants, array_agg(job_id) FROM claimed
     HAVING count(*) > 0
   )
   SELECT * FROM claimed;
  IF limited THEN
    -- A job that could not start after all gave way to nobody yet.
    INSERT INTO {schema}.openings (tenant_id, queue_name, concurrency_key)
    SELECT j.tenant_id, j.queue_name, j.concurrency_key FROM {schema}.jobs j
    WHERE j.job_id = ANY (admitted.job_ids) AND j.concurrency_key IS NOT NULL AND j.state <> 'RUNNING';
    IF parked > 0 THEN
      RETURN NEXT jsonb_populate_record(NULL::{schema}.lease, '{"state": "PARKED"}');
    END IF;
  END IF;
END
$$;

-- Why an attempt was lost, where its supervisor has said so.
CREATE FUNCTION {schema}.noted_cause(job uuid, no integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.cause FROM {schema}.attempt_reports r WHERE r.job_id = job AND r.attempt_no = no
$$;

-- Compare-and-swap by ids, under the same rule of eligibility as any claim: waiting, due, not held, not past its
-- deadline, queue not paused, handler version free or had; or running on a lease that ran out, with attempts left
-- and no cancel requested. Without p_versions the caller answers for the version itself. Limits bind it as they bind
-- claims. An unsafe effect in doubt leaves the job to the sweep, which holds it.
-- Locks: the jobs that nobody else holds (who holds one is about to start, end or cancel it), in a statement of their
-- own, so that the next one sees every effect that their last attempts began; their ready rows in the same way (that
-- claim will then find the job taken).
CREATE FUNCTION {schema}.acquire_jobs(
  p_job_ids uuid[], p_worker_id text, p_lease_seconds float8, p_claim_id uuid, p_versions jsonb
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  locked constant uuid[] := ARRAY(
    SELECT j.job_id FROM {schema}.jobs j WHERE j.job_id = ANY (p_job_ids) FOR UPDATE SKIP LOCKED);
  startable uuid[];
BEGIN
  LOCK TABLE {schema}.claims IN ROW EXCLUSIVE MODE; -- as in claim_jobs
  -- One that runs on a lease that ran out keeps the slot it has.
  startable := ARRAY(SELECT j.job_id FROM {schema}.jobs j WHERE j.job_id = ANY (locked) AND j.state = 'RUNNING')
    || (SELECT a.job_ids FROM {schema}.admit(ARRAY(
      SELECT (j.run_after, j.job_id, -j.priority, j.concurrency_limit, j.queue_name, j.tenant_id, NULL,
        j.concurrency_key)::{schema}.ready_jobs
      FROM {schema}.jobs j
      WHERE j.job_id = ANY (locked) AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
        AND j.run_after <= clock_timestamp())) a);
  RETURN QUERY
   WITH lost AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.current_attempt_id, j.tenant_id, j.worker_id, j.attempt_version,
       j.attempt_started_at
     FROM {schema}.jobs j WHERE j.job_id = ANY (startable) AND j.state = 'RUNNING'
   ), won AS (
     UPDATE {schema}.jobs j SET
       state = 'RUNNING', attempt_count = j.attempt_count + 1, current_attempt_id = gen_random_uuid(),
       worker_id = p_worker_id, attempt_version = p_versions ->> j.job_type,
       lease_expires_at = clock_timestamp() + make_interval(secs => p_lease_seconds),
       started_at = coalesce(j.started_at, clock_timestamp()), attempt_started_at = clock_timestamp(),
       updated_at = clock_timestamp(),
       holds_slot = CASE WHEN j.state = 'RUNNING' THEN j.holds_slot
         ELSE nullif(j.concurrency_key IS NOT NULL OR EXISTS (
           SELECT FROM {schema}.tenants t WHERE t.tenant_id = j.tenant_id AND t.max_running IS NOT NULL), false) END
     WHERE j.job_id = ANY (startable)
       AND (j.handler_version IS NULL OR p_versions IS NULL OR p_versions ->> j.job_type = j.handler_version)
       AND (j.deadline IS NULL OR j.deadline > clock_timestamp())
       AND NOT EXISTS (
         SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL)
       AND (
         (j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL
           AND j.run_after <= clock_timestamp())
         OR (j.state = 'RUNNING' AND j.lease_expires_at <= clock_timestamp() AND j.cancel_requested_at IS NULL
           AND j.attempt_count - j.interruptions < j.max_attempts AND NOT EXISTS (
             SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id AND e.kind = 'unsafe'
               AND e.state IN ('DISPATCHED', 'IN_DOUBT')))
       )
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         date_part('epoch', j.run_after) AS ready_since, j.timeout_seconds, j.deadline,
         date_part('epoch', j.deadline - clock_timestamp()) AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.error_json ->> 'code' AS last_error, j.replay_of, j.holds_slot, j.input_payload
   ), consumed AS (
     DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (ARRAY(
       SELECT r.ctid FROM won JOIN {schema}.jobs j ON j.job_id = won.job_id JOIN {schema}.ready_jobs r
         ON r.queue_name = j.queue_name AND r.tenant_id = j.tenant_id AND r.rank = -j.priority
         AND r.ready_at = j.run_after AND r.job_id = j.job_id
       FOR UPDATE OF r SKIP LOCKED))
   ), closed AS (
     INSERT INTO {schema}.past_attempts (
       job_id, attempt_no, attempt_id, tenant_id, worker_id, handler_version, started_at, status, cause)
     SELECT l.job_id, l.attempt_count, l.current_attempt_id, l.tenant_id, l.worker_id, l.attempt_version,
       l.attempt_started_at, 'LEASE_EXPIRED', coalesce({schema}.noted_cause(l.job_id, l.attempt_count), 'LEASE_EXPIRED')
     FROM lost l JOIN won ON won.job_id = l.job_id
   ), doubted AS (
     UPDATE {schema}.effects e SET state = 'IN_DOUBT', in_doubt_at = clock_timestamp()
     FROM won WHERE e.job_id = won.job_id AND e.state = 'DISPATCHED'
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, tenant_ids, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds),
       array_agg(DISTINCT queue_name), array_agg(DISTINCT tenant_id), array_agg(job_id)
     FROM won HAVING count(*) > 0
   )
   SELECT * FROM won;
END
$$;

-- Finds leases that ran out through the claims' hints, and ends or restarts their jobs: attempts used up,
-- deadline passed or cancel requested end the job, whoever finds it; the rest gets a new attempt here, up to the
-- limit, if this worker serves the queue and tenant. One pinned to a handler version that this worker has not is made to
-- wait for one that has; so is one that holds a slot and is not this worker's to start, because others wait for the
-- slot. A job that starts again keeps the slot it has. The old attempt is closed in the same statement, which turns its
-- DISPATCHED effects IN_DOUBT; an unsafe one holds the job.
--
-- Locks: claims (SKIP LOCKED), jobs (SKIP LOCKED), each in a statement of its own, so that the last one sees every
-- effect that was begun before; then effects.
-- Hints of queues that this worker does not serve are left to those who do for ten seconds: to look at a hint is
-- to move it, and it must not be moved away from under them for ever.
-- A hint whose jobs are all done is deleted; otherwise it moves to the earliest lease still running.
CREATE FUNCTION {schema}.reclaim_jobs(
  p_queues text[], p_tenant text, p_worker_id text, p_limit integer, p_lease_seconds float8, p_claim_id uuid,
  p_versions jsonb
) RETURNS SETOF {schema}.lease
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  due_ids constant uuid[] := ARRAY(
    SELECT c.claim_id FROM {schema}.claims c
    WHERE c.expires_at <= (SELECT clock_timestamp())
      AND (c.queue_names && p_queues AND (p_tenant IS NULL OR p_tenant = ANY (c.tenant_ids))
        OR c.expires_at <= (SELECT clock_timestamp() - interval '10 seconds'))
    ORDER BY c.expires_at LIMIT 50 FOR UPDATE SKIP LOCKED);
  expired constant uuid[] := ARRAY(
    SELECT j.job_id FROM {schema}.jobs j
    WHERE j.job_id = ANY (ARRAY(SELECT unnest(c.job_ids) FROM {schema}.claims c WHERE c.claim_id = ANY (due_ids)))
      AND j.state = 'RUNNING' AND j.lease_expires_at <= clock_timestamp()
    FOR UPDATE OF j SKIP LOCKED);
BEGIN
  RETURN QUERY
   WITH due AS MATERIALIZED (
     SELECT c.claim_id, c.job_ids FROM {schema}.claims c WHERE c.claim_id = ANY (due_ids)
   ), running AS MATERIALIZED (
     SELECT j.job_id, j.attempt_count, j.current_attempt_id, j.tenant_id, j.worker_id, j.attempt_version,
       j.attempt_started_at, coalesce({schema}.noted_cause(j.job_id, j.attempt_count), 'LEASE_EXPIRED') AS cause,
       j.lease_expires_at, j.priority, mine.ours,
       CASE
         WHEN j.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
         WHEN j.deadline <= clock_timestamp() THEN 'DEADLINE_EXCEEDED'
         WHEN EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = j.job_id AND e.kind = 'unsafe'
           AND e.state IN ('DISPATCHED', 'IN_DOUBT')) THEN 'HELD'
         WHEN j.attempt_count - j.interruptions >= j.max_attempts THEN 'EXHAUSTED'
         WHEN j.handler_version <> coalesce(p_versions ->> j.job_type, '') THEN 'WAITS'
         WHEN j.holds_slot AND NOT mine.ours THEN 'WAITS'
       END AS ending
     FROM {schema}.jobs j CROSS JOIN LATERAL (
       SELECT j.queue_name = ANY (p_queues) AND (p_tenant IS NULL OR j.tenant_id = p_tenant) AND NOT EXISTS (
         SELECT FROM {schema}.queues q WHERE q.queue_name = j.queue_name AND q.paused_at IS NOT NULL) AS ours
     ) mine
     WHERE j.job_id = ANY (expired)
   ), chosen AS MATERIALIZED (
     SELECT r.* FROM running r WHERE r.ending IS NOT NULL
     UNION ALL
     (SELECT r.* FROM running r WHERE r.ending IS NULL AND r.ours
      ORDER BY r.priority DESC, r.lease_expires_at LIMIT p_limit)
   ), closed AS (
     INSERT INTO {schema}.past_attempts (
       job_id, attempt_no, attempt_id, tenant_id, worker_id, handler_version, started_at, status, cause)
     SELECT c.job_id, c.attempt_count, c.current_attempt_id, c.tenant_id, c.worker_id, c.attempt_version,
       c.attempt_started_at, 'LEASE_EXPIRED', c.cause FROM chosen c
   ), doubted AS (
     UPDATE {schema}.effects e SET state = 'IN_DOUBT', in_doubt_at = clock_timestamp()
     FROM chosen c WHERE e.job_id = c.job_id AND e.state = 'DISPATCHED'
   ), changed AS (
     UPDATE {schema}.jobs j SET
       state = (CASE c.ending WHEN 'CANCELLED' THEN 'CANCELLED' WHEN 'WAITS' THEN 'FAILED_RETRYABLE'
         WHEN 'HELD' THEN 'FAILED_RETRYABLE'
         ELSE CASE WHEN c.ending IS NULL THEN 'RUNNING' ELSE 'FAILED_TERMINAL' END
         END)::{schema}.oracle_job_state,
       attempt_count = j.attempt_count + (c.ending IS NULL)::integer,
       current_attempt_id = CASE WHEN c.ending IS NULL THEN gen_random_uuid() ELSE j.current_attempt_id END,
       worker_id = CASE WHEN c.ending IS NULL THEN p_worker_id END,
       attempt_version = CASE WHEN c.ending IS NULL THEN p_versions ->> j.job_type END,
       attempt_started_at = CASE WHEN c.ending IS NULL THEN clock_timestamp() END,
       lease_expires_at = CASE WHEN c.ending IS NULL THEN clock_timestamp() + make_interval(secs => p_lease_seconds) END,
       hold_reason = CASE WHEN c.ending = 'HELD' THEN 'effect in doubt' END,
       completed_at = CASE WHEN c.ending NOT IN ('WAITS', 'HELD') THEN clock_timestamp() END,
       active_spec_hash = CASE WHEN coalesce(c.ending, 'WAITS') IN ('WAITS', 'HELD') THEN j.active_spec_hash END,
       updated_at = clock_timestamp(),
       error_json = jsonb_build_object('retryable', coalesce(c.ending, 'WAITS') IN ('WAITS', 'HELD')) || CASE
         WHEN c.ending = 'DEADLINE_EXCEEDED' THEN
           '{"code": "DEADLINE_EXCEEDED", "message": "the deadline passed while the attempt was lost"}'::jsonb
         WHEN c.cause = 'WORKER_CRASHED' THEN
           '{"code": "WORKER_CRASHED", "message": "the process that ran the attempt died"}'::jsonb
         ELSE '{"code": "LEASE_EXPIRED", "message": "the lease ran out without renewal"}'::jsonb END
     FROM chosen c WHERE j.job_id = c.job_id
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.interruptions,
         j.max_attempts, j.tenant_id, j.queue_name, j.job_type, j.idempotency_key, j.priority,
         date_part('epoch', j.run_after) AS ready_since, j.timeout_seconds, j.deadline,
         date_part('epoch', j.deadline - clock_timestamp()) AS deadline_in_seconds, j.handler_version,
         j.state::text AS state, j.error_json ->> 'code' AS last_error, j.replay_of, j.holds_slot, j.input_payload
   ), hint AS (
     INSERT INTO {schema}.claims (claim_id, worker_id, expires_at, queue_names, tenant_ids, job_ids)
     SELECT p_claim_id, p_worker_id, clock_timestamp() + make_interval(secs => p_lease_seconds),
       array_agg(DISTINCT queue_name), array_agg(DISTINCT tenant_id), array_agg(job_id)
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

-- One hash that binds a result to what it came from; src/core/provenance.ts computes the same. Plain text instead of
-- JSON, because it is computed with every result; STABLE, like convert_to, so that it is inlined.
CREATE FUNCTION {schema}.provenance_hash(
  spec_hash text, handler_version text, attempt_id uuid, attempt_no integer, model_metadata jsonb, content_hash text,
  records text
) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT encode(sha256(convert_to('provenance 1' || E'\n' || spec_hash || E'\n' || coalesce(handler_version, '-')
    || E'\n' || attempt_id::text || ' ' || attempt_no::text || E'\n'
    || coalesce({schema}.canonical_json(model_metadata), '-') || E'\n' || content_hash || E'\n' || records, 'UTF8')), 'hex')
$$;

-- Completes jobs and returns the attempts that could not. The fence comes first: what does not match job, attempt and
-- RUNNING is not in `won`, and only what is in `won` gets a result. Nor is a job that has an
-- effect open or in doubt: it has not succeeded. p_recorded says for which jobs there may be steps, effects or
-- artifacts; the others need no look. Only ids and places go through the joins: payloads would be copied with every step.
-- Locks: the jobs.
CREATE FUNCTION {schema}.settle_succeeded(
  p_job_ids uuid[], p_attempt_ids uuid[], p_payloads text[], p_content_hashes text[], p_recorded boolean[],
  p_finished_claims uuid[]
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
       lease_expires_at = NULL, error_json = NULL, active_spec_hash = NULL
     FROM unnest(p_job_ids, p_attempt_ids) WITH ORDINALITY AS o(job_id, attempt_id, n)
     WHERE j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
       AND NOT EXISTS (
         SELECT FROM {schema}.effects e WHERE e.job_id = o.job_id AND e.state NOT IN ('CONFIRMED', 'FAILED'))
     RETURNING j.job_id, j.current_attempt_id AS attempt_id, j.attempt_count AS attempt_no, j.tenant_id, j.spec_hash,
       j.attempt_version, j.attempt_started_at, o.n
   ), stored AS (
     INSERT INTO {schema}.results (
       job_id, attempt_id, started_at, tenant_id, content_hash, provenance_hash, result_payload)
     SELECT job_id, attempt_id, attempt_started_at, tenant_id, p_content_hashes[n],
       {schema}.provenance_hash(spec_hash, attempt_version, attempt_id, attempt_no, NULL, p_content_hashes[n],
         CASE WHEN p_recorded[n] THEN {schema}.records_hash(job_id, attempt_id) ELSE '-' END),
       p_payloads[n]::jsonb
     FROM won
   ), done_hints AS (
     DELETE FROM {schema}.claims WHERE claim_id = ANY (p_finished_claims)
   )
   SELECT o.attempt_id FROM unnest(p_attempt_ids) AS o(attempt_id)
   WHERE (SELECT count(*) FROM won) < cardinality(p_attempt_ids)
     AND o.attempt_id <> ALL (ARRAY(SELECT attempt_id FROM won));
END
$$;
