-- Submitting jobs, the only ways in which they are inserted. They run as the owner, like those of 005_lease_functions.sql.

-- What caller_serves is to rows that are there, for jobs that are submitted: their tenant is the caller's own word.
CREATE FUNCTION {schema}.check_tenants(tenants text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT {schema}.caller_has('{role}_worker')
    AND tenants IS DISTINCT FROM array_fill({schema}.current_tenant(), ARRAY[cardinality(tenants)])
  THEN
    RAISE EXCEPTION 'a job of another tenant than the caller''s violates row-level security'
      USING ERRCODE = 'insufficient_privilege';
  END IF;
END
$$;

-- A replay is of a job of the same tenant; another tenant's looks like one that does not exist.
-- Locks: the origins, which whoever prunes then leaves alone.
CREATE FUNCTION {schema}.check_replays(tenants text[], replays_of uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM {schema}.jobs j WHERE j.job_id = ANY (replays_of) FOR KEY SHARE;
  IF EXISTS (
    SELECT FROM unnest(tenants, replays_of) AS r(tenant_id, job_id)
    WHERE r.job_id IS NOT NULL AND NOT EXISTS (
      SELECT FROM {schema}.jobs j WHERE j.job_id = r.job_id AND j.tenant_id = r.tenant_id)
  ) THEN
    RAISE EXCEPTION 'JOB_NOT_FOUND: there is no such job to replay' USING ERRCODE = 'no_data_found';
  END IF;
END
$$;

-- The id a key may stand for: a job without a key of its own has its id for one.
CREATE FUNCTION {schema}.key_as_id(key text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN key ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN key::uuid END
$$;

-- Inserts jobs, makes them ready or sets their timers, and wakes workers; returns the ids of those that are not stored,
-- because somebody has their key, or an unfinished twin is there.
-- ON CONFLICT covers both unique keys: the idempotency key and, for dedupe 'active', the unfinished twin.
CREATE FUNCTION {schema}.enqueue_jobs(
  p_job_ids uuid[], p_tenants text[], p_queues text[], p_types text[], p_keys text[], p_spec_hashes text[],
  p_active_spec_hashes text[], p_priorities integer[], p_max_attempts integer[], p_timeouts integer[],
  p_run_ats timestamptz[], p_delays float8[], p_deadlines timestamptz[], p_times_left float8[],
  p_handler_versions text[], p_replays_of uuid[], p_concurrency_keys text[], p_concurrency_limits integer[],
  p_inputs text[], p_announcing boolean DEFAULT false
) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  aged boolean;
  announces boolean;
  limited boolean;
  with_quota text[] := '{}';
  new_ids uuid[];
  later_ids uuid[];
  limited_ids uuid[];
  counted_tenants text[];
  any_due boolean;
  queue text;
  woken text;
BEGIN
  PERFORM {schema}.check_tenants(p_tenants);
  IF p_replays_of IS NOT NULL THEN
    PERFORM {schema}.check_replays(p_tenants, p_replays_of);
  END IF;
  -- All are rare, and a look-up for each job would be dear.
  SELECT coalesce(bool_or(q.ageing_seconds IS NOT NULL), false), coalesce(bool_or(q.announced), false), EXISTS (
    SELECT FROM {schema}.tenants t
    WHERE t.tenant_id = ANY (p_tenants) AND (t.max_waiting IS NOT NULL OR t.enqueue_limit IS NOT NULL))
  INTO aged, announces, limited FROM {schema}.queues q WHERE q.queue_name = ANY (p_queues);
  IF limited THEN
    with_quota := {schema}.check_quotas(p_tenants, p_keys, p_active_spec_hashes);
  END IF;
  WITH inserted AS (
    INSERT INTO {schema}.jobs (
      job_id, tenant_id, queue_name, job_type, idempotency_key, spec_hash, active_spec_hash, priority,
      max_attempts, timeout_seconds, run_after, deadline, handler_version, replay_of, concurrency_key,
      concurrency_limit, counted, input_payload)
    SELECT j.job_id, j.tenant_id, j.queue_name, j.job_type, coalesce(j.key, j.job_id::text), j.spec_hash,
      j.active_spec_hash, j.priority, j.max_attempts, j.timeout_seconds,
      coalesce(j.run_at, clock_timestamp() + make_interval(secs => coalesce(j.delay, 0))),
      coalesce(j.deadline, clock_timestamp() + make_interval(secs => j.time_left)),
      j.handler_version, j.replay_of, j.concurrency_key, j.concurrency_limit,
      nullif(j.tenant_id = ANY (with_quota), false), j.input::jsonb
    FROM unnest(
      p_job_ids, p_tenants, p_queues, p_types, p_keys, p_spec_hashes, p_active_spec_hashes, p_priorities,
      p_max_attempts, p_timeouts, p_run_ats, p_delays, p_deadlines, p_times_left, p_handler_versions,
      p_replays_of, p_concurrency_keys, p_concurrency_limits, p_inputs
    ) AS j(job_id, tenant_id, queue_name, job_type, key, spec_hash, active_spec_hash, priority,
      max_attempts, timeout_seconds, run_at, delay, deadline, time_left, handler_version, replay_of,
      concurrency_key, concurrency_limit, input)
    WHERE j.key IS NULL OR NOT EXISTS (
      SELECT FROM {schema}.jobs other
      WHERE other.job_id = {schema}.key_as_id(j.key) AND other.tenant_id = j.tenant_id
        AND other.idempotency_key = j.key)
    ON CONFLICT DO NOTHING
    RETURNING job_id, tenant_id, queue_name, priority, run_after, deadline, run_after <= clock_timestamp() AS due,
      job_type || '@' || handler_version AS pin, concurrency_key, concurrency_limit, counted
  ), ready AS (
    INSERT INTO {schema}.ready_jobs (
      queue_name, tenant_id, rank, ready_at, job_id, pin, concurrency_key, concurrency_limit)
    SELECT i.queue_name, i.tenant_id,
      CASE WHEN order_of.ageing IS NULL THEN -i.priority ELSE 0 END,
      CASE WHEN order_of.ageing IS NULL THEN i.run_after
        ELSE i.run_after - make_interval(secs => i.priority * order_of.ageing) END,
      i.job_id, i.pin, i.concurrency_key, i.concurrency_limit
    FROM inserted i CROSS JOIN LATERAL (
      SELECT CASE WHEN aged THEN (
        SELECT q.ageing_seconds FROM {schema}.queues q WHERE q.queue_name = i.queue_name) END AS ageing
    ) order_of
    WHERE i.due
  )
  SELECT array_agg(i.job_id), array_agg(i.job_id) FILTER (WHERE NOT i.due),
    array_agg(i.job_id) FILTER (WHERE i.deadline IS NOT NULL),
    array_agg(i.tenant_id) FILTER (WHERE i.counted), bool_or(i.due)
  INTO new_ids, later_ids, limited_ids, counted_tenants, any_due
  FROM inserted i;
  -- What most submissions do not need stands apart: Postgres prepares every part of a statement, used or not.
  IF later_ids IS NOT NULL OR limited_ids IS NOT NULL THEN
    INSERT INTO {schema}.timers (due_at, job_id, kind, tenant_id)
    SELECT j.run_after, j.job_id, 'run', j.tenant_id FROM {schema}.jobs j WHERE j.job_id = ANY (later_ids)
    UNION ALL
    SELECT j.deadline, j.job_id, 'deadline', j.tenant_id FROM {schema}.jobs j WHERE j.job_id = ANY (limited_ids);
  END IF;
  IF announces THEN
    -- The caller announces its jobs itself; the outbox speaks up only if that did not happen.
    INSERT INTO {schema}.outbox (publish_at, job_id)
    SELECT clock_timestamp() + CASE WHEN p_announcing THEN interval '2 seconds' ELSE interval '0' END, j.job_id
    FROM {schema}.jobs j JOIN {schema}.queues q ON q.queue_name = j.queue_name AND q.announced
    WHERE j.job_id = ANY (new_ids);
  END IF;
  IF counted_tenants IS NOT NULL THEN
    INSERT INTO {schema}.waiting_counts AS w (tenant_id, backend, jobs)
    SELECT c.tenant_id, pg_backend_pid(), count(*) FROM unnest(counted_tenants) AS c(tenant_id) GROUP BY c.tenant_id
    ON CONFLICT (tenant_id, backend) DO UPDATE SET jobs = w.jobs + excluded.jobs;
  END IF;
  IF any_due THEN
    FOREACH queue IN ARRAY p_queues LOOP
      IF queue IS DISTINCT FROM woken THEN
        PERFORM {schema}.wake(queue);
        woken := queue;
      END IF;
    END LOOP;
  END IF;
  IF cardinality(new_ids) IS DISTINCT FROM cardinality(p_job_ids) THEN
    RETURN QUERY SELECT unnest(p_job_ids) EXCEPT SELECT unnest(new_ids);
  END IF;
END
$$;

-- The ordinary submission: jobs that are due at once, differ in their inputs only, and have no key and no twin to join.
-- What they have in common is said once, and no row is inserted on trial as ON CONFLICT does it. Where their queue or
-- tenant has rules of its own, or an earlier try whose reply was lost has stored them, enqueue_jobs sees to it.
-- Hashes and inputs come as one text each, a line for every job: neither has line breaks in it, and what would be quoted
-- as the elements of an array and read letter by letter is cut in one go.
CREATE FUNCTION {schema}.enqueue_alike(
  p_tenant text, p_queue text, p_type text, p_priority integer, p_max_attempts integer, p_timeout integer,
  p_job_ids uuid[], p_spec_hashes text, p_inputs text, p_announcing boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  moment constant timestamptz := clock_timestamp();
  jobs constant integer[] := ARRAY[cardinality(p_job_ids)];
  spec_hashes constant text[] := string_to_array(p_spec_hashes, E'\n');
  inputs constant text[] := string_to_array(p_inputs, E'\n');
BEGIN
  PERFORM {schema}.check_tenants(ARRAY[p_tenant]);
  IF EXISTS (
      SELECT FROM {schema}.queues q
      WHERE q.queue_name = p_queue AND (q.ageing_seconds IS NOT NULL OR q.announced))
    OR EXISTS (
      SELECT FROM {schema}.tenants t
      WHERE t.tenant_id = p_tenant AND (t.max_waiting IS NOT NULL OR t.enqueue_limit IS NOT NULL))
    OR EXISTS (SELECT FROM {schema}.jobs j WHERE j.job_id = p_job_ids[1])
  THEN
    PERFORM FROM {schema}.enqueue_jobs(
      p_job_ids, array_fill(p_tenant, jobs), array_fill(p_queue, jobs), array_fill(p_type, jobs), NULL, spec_hashes,
      NULL, array_fill(p_priority, jobs), array_fill(p_max_attempts, jobs), array_fill(p_timeout, jobs),
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, inputs, p_announcing);
    RETURN;
  END IF;
  INSERT INTO {schema}.jobs (
    job_id, tenant_id, queue_name, job_type, idempotency_key, spec_hash, priority, max_attempts, timeout_seconds,
    run_after, input_payload)
  SELECT j.job_id, p_tenant, p_queue, p_type, j.job_id::text, j.spec_hash, p_priority, p_max_attempts, p_timeout,
    moment, j.input::jsonb
  FROM unnest(p_job_ids, spec_hashes, inputs) AS j(job_id, spec_hash, input);
  INSERT INTO {schema}.ready_jobs (queue_name, tenant_id, rank, ready_at, job_id)
  SELECT p_queue, p_tenant, -p_priority, moment, j.job_id FROM unnest(p_job_ids) AS j(job_id);
  PERFORM {schema}.wake(p_queue);
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
  IF enqueue.key IS NULL AND dedupe IS NULL AND enqueue.run_after IS NULL AND enqueue.deadline IS NULL
    AND enqueue.handler_version IS NULL AND enqueue.concurrency_key IS NULL AND enqueue.concurrency_limit IS NULL
  THEN
    id := {schema}.new_id();
    PERFORM {schema}.enqueue_alike(
      tenant, enqueue.queue, enqueue.job_type, enqueue.priority, enqueue.max_attempts, enqueue.timeout_seconds,
      ARRAY[id], hash, enqueue.input::text, false);
    RETURN QUERY SELECT id, true;
    RETURN;
  END IF;
  FOR round IN 1 .. 10 LOOP
    id := {schema}.new_id();
    PERFORM FROM {schema}.enqueue_jobs(
      ARRAY[id], ARRAY[tenant], ARRAY[enqueue.queue], ARRAY[enqueue.job_type], ARRAY[enqueue.key], ARRAY[hash],
      ARRAY[CASE WHEN dedupe = 'active' THEN hash END], ARRAY[enqueue.priority], ARRAY[enqueue.max_attempts],
      ARRAY[enqueue.timeout_seconds], ARRAY[enqueue.run_after], NULL, ARRAY[enqueue.deadline], NULL,
      ARRAY[enqueue.handler_version], NULL, ARRAY[enqueue.concurrency_key],
      ARRAY[coalesce(enqueue.concurrency_limit, CASE WHEN enqueue.concurrency_key IS NOT NULL THEN 1 END)],
      ARRAY[enqueue.input::text]);
    IF NOT FOUND THEN
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
