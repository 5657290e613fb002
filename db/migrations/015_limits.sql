-- How limits are kept at the start of jobs: caps per tenant and per concurrency key, and rates of starts. What claims,
-- acquire and the sweep do about jobs with limits (docs/decisions/0015-sharing-between-tenants.md).

-- Limits are changed by somebody who sees every tenant: one that acts for a tenant could widen its own.
CREATE POLICY added_for_all ON {schema}.tenants FOR INSERT TO {role}_server
WITH CHECK ((SELECT {schema}.sees_every_tenant() AND {schema}.current_tenant() IS NULL));
CREATE POLICY changed_for_all ON {schema}.tenants FOR UPDATE TO {role}_server
USING ((SELECT {schema}.sees_every_tenant() AND {schema}.current_tenant() IS NULL));

-- A hash, because names may together be longer than an index entry.
CREATE FUNCTION {schema}.line_of(queue text, pin text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT md5(queue || E'\n' || coalesce(pin, ''))
$$;

-- Decisions about one tenant's limits are made one after the other, or two would give away the same slot. The turn
-- ends with the transaction. Nobody waits for it longer than a moment: one tenant's trouble is not the others'.
CREATE FUNCTION {schema}.take_turn(p_tenant text) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '20ms' AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'limits cannot be kept in a % transaction: its snapshot is older than the turn',
      current_setting('transaction_isolation') USING ERRCODE = 'active_sql_transaction';
  END IF;
  PERFORM FROM {schema}.turns t WHERE t.tenant_id = p_tenant FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    RETURN true;
  END IF;
  -- The block costs a subtransaction, which the ordinary way does without.
  BEGIN
    INSERT INTO {schema}.turns (tenant_id) VALUES (p_tenant) ON CONFLICT DO NOTHING;
    PERFORM FROM {schema}.turns t WHERE t.tenant_id = p_tenant FOR UPDATE;
    RETURN true;
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
END
$$;

-- How many more jobs the tenant may start now; NULL: any number. In its turn only.
-- A rate saves up one second's worth of starts, at least one.
CREATE FUNCTION {schema}.start_room(p_tenant text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  rule {schema}.tenants%ROWTYPE;
  saved double precision;
  room integer;
BEGIN
  SELECT * INTO rule FROM {schema}.tenants t WHERE t.tenant_id = p_tenant;
  IF rule.max_running IS NOT NULL THEN
    room := greatest(0, rule.max_running - (SELECT count(*) FROM {schema}.slots s WHERE s.tenant_id = p_tenant));
  END IF;
  IF rule.start_limit IS NOT NULL THEN
    UPDATE {schema}.turns t SET counted_at = clock_timestamp(), tokens = least(
      greatest(1, rule.start_limit::double precision / rule.start_seconds),
      t.tokens + extract(epoch FROM clock_timestamp() - t.counted_at) * rule.start_limit / rule.start_seconds)
    WHERE t.tenant_id = p_tenant RETURNING t.tokens INTO saved;
    room := least(room, floor(saved));
  END IF;
  RETURN room;
END
$$;

-- Notes starts under the tenant's rate, if it has one. When the rate is used up and more jobs would start, an opening
-- is set for the moment at which it allows the next. In the tenant's turn only.
CREATE FUNCTION {schema}.spend_starts(p_tenant text, p_jobs integer, p_more boolean, p_queue text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  seconds_per_start double precision;
  turn {schema}.turns%ROWTYPE;
BEGIN
  SELECT t.start_seconds::double precision / t.start_limit INTO seconds_per_start
  FROM {schema}.tenants t WHERE t.tenant_id = p_tenant;
  IF seconds_per_start IS NULL THEN
    RETURN;
  END IF;
  UPDATE {schema}.turns t SET tokens = t.tokens - p_jobs WHERE t.tenant_id = p_tenant RETURNING t.* INTO turn;
  IF p_more AND turn.tokens < 1 AND (turn.opens_at IS NULL OR turn.opens_at <= clock_timestamp()) THEN
    -- Not more often than twenty times a second: a high rate then lets several through at once.
    turn.opens_at := clock_timestamp() + make_interval(secs => greatest(0.05, (1 - turn.tokens) * seconds_per_start));
    UPDATE {schema}.turns t SET opens_at = turn.opens_at WHERE t.tenant_id = p_tenant;
    INSERT INTO {schema}.openings (due_at, tenant_id, queue_name) VALUES (turn.opens_at, p_tenant, p_queue);
    PERFORM pg_notify('{schema}_wake', 'sweep');
  END IF;
END
$$;

-- Of one tenant's candidates, those that its caps and its rate let start, in their order. In the tenant's turn only.
CREATE FUNCTION {schema}.fitting(p_tenant text, p_candidates {schema}.ready_jobs[]) RETURNS uuid[]
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
  room constant integer := {schema}.start_room(p_tenant);
  fits uuid[];
BEGIN
  WITH candidate AS MATERIALIZED (
    SELECT c.job_id, c.rank, c.ready_at, c.concurrency_key, c.concurrency_limit, row_number()
      OVER (PARTITION BY c.concurrency_key ORDER BY c.rank, c.ready_at, c.job_id) AS place
    FROM unnest(p_candidates) c
  ), running AS MATERIALIZED (
    SELECT k.concurrency_key, (
      SELECT count(*) FROM {schema}.slots s
      WHERE s.tenant_id = p_tenant AND s.concurrency_key = k.concurrency_key) AS jobs
    FROM (SELECT DISTINCT c.concurrency_key FROM candidate c WHERE c.concurrency_key IS NOT NULL) k
  )
  SELECT coalesce(array_agg(fit.job_id), '{}') INTO fits FROM (
    SELECT c.job_id FROM candidate c LEFT JOIN running ON running.concurrency_key = c.concurrency_key
    WHERE c.concurrency_key IS NULL OR running.jobs + c.place <= c.concurrency_limit
    ORDER BY c.rank, c.ready_at, c.job_id LIMIT room
  ) fit;
  PERFORM {schema}.spend_starts(
    p_tenant, cardinality(fits), cardinality(fits) < cardinality(p_candidates), p_candidates[1].queue_name);
  RETURN fits;
END
$$;

-- Which jobs may start as far as limits go: those without, and what their limits let through. `turns` are the tenants
-- that it was this transaction's turn to decide about; jobs of the others with limits may not start now.
CREATE FUNCTION {schema}.admit(p_candidates {schema}.ready_jobs[], OUT job_ids uuid[], OUT turns text[])
LANGUAGE plpgsql AS $$
DECLARE
  share record;
BEGIN
  job_ids := '{}';
  turns := '{}';
  FOR share IN
    SELECT c.tenant_id, array_agg(c) AS candidates, bool_or(
      c.concurrency_key IS NOT NULL OR t.max_running IS NOT NULL OR t.start_limit IS NOT NULL) AS limited
    FROM unnest(p_candidates) c LEFT JOIN {schema}.tenants t ON t.tenant_id = c.tenant_id
    GROUP BY c.tenant_id
  LOOP
    IF NOT share.limited THEN
      job_ids := job_ids || ARRAY(SELECT c.job_id FROM unnest(share.candidates) c);
    ELSIF {schema}.take_turn(share.tenant_id) THEN
      turns := turns || share.tenant_id;
      job_ids := job_ids || {schema}.fitting(share.tenant_id, share.candidates);
    END IF;
  END LOOP;
END
$$;

-- Moves ready rows whose keys are full out of the way, a thousand at a time: a thousand jobs of one key must not take a
-- thousand claims to get past. Only a key that has as many running as the job allows counts as full, because the end
-- of one of those is what brings the job back. For candidates of tenants whose turn it is; says how many.
CREATE FUNCTION {schema}.park(p_candidates {schema}.ready_jobs[], p_turns text[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  parked integer;
BEGIN
  WITH running AS MATERIALIZED (
    SELECT k.tenant_id, k.concurrency_key, (
      SELECT count(*) FROM {schema}.slots s
      WHERE s.tenant_id = k.tenant_id AND s.concurrency_key = k.concurrency_key) AS jobs
    FROM (
      SELECT DISTINCT c.tenant_id, c.concurrency_key FROM unnest(p_candidates) c
      WHERE c.concurrency_key IS NOT NULL AND c.tenant_id = ANY (p_turns)
    ) k
  ), crowd AS MATERIALIZED (
    SELECT more.row_id FROM running CROSS JOIN LATERAL (
      SELECT r.ctid AS row_id FROM {schema}.ready_jobs r
      WHERE r.tenant_id = running.tenant_id AND r.concurrency_key = running.concurrency_key
        AND r.concurrency_limit <= running.jobs
      ORDER BY r.rank, r.ready_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ) more LIMIT 1000
  ), moved AS (
    DELETE FROM {schema}.ready_jobs WHERE ctid = ANY (ARRAY(SELECT row_id FROM crowd)) RETURNING *
  )
  INSERT INTO {schema}.parked_jobs (tenant_id, concurrency_key, line, rank, ready_at, job_id, concurrency_limit)
  SELECT m.tenant_id, m.concurrency_key, {schema}.line_of(m.queue_name, m.pin), m.rank, m.ready_at, m.job_id,
    m.concurrency_limit
  FROM moved m ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS parked = ROW_COUNT;
  RETURN parked;
END
$$;

-- A slot is taken and given back with the change of state, whoever makes it: settle, reclaim, a person with psql. No
-- lock is waited for here; that others may start is left to pass_openings.
CREATE FUNCTION {schema}.jobs_slot() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (OLD.state = 'RUNNING') = (NEW.state = 'RUNNING') THEN
    RETURN NULL;
  END IF;
  IF NEW.state = 'RUNNING' THEN
    INSERT INTO {schema}.slots (tenant_id, concurrency_key, job_id)
    VALUES (NEW.tenant_id, coalesce(NEW.concurrency_key, ''), NEW.job_id) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM {schema}.slots s WHERE s.tenant_id = NEW.tenant_id
      AND s.concurrency_key = coalesce(NEW.concurrency_key, '') AND s.job_id = NEW.job_id;
    INSERT INTO {schema}.openings (tenant_id, queue_name, concurrency_key)
    VALUES (NEW.tenant_id, NEW.queue_name, NEW.concurrency_key);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER jobs_slot AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (NEW.holds_slot) EXECUTE FUNCTION {schema}.jobs_slot();

-- Puts waiting jobs that are due among the ready ones, wakes workers, and says how many there were.
CREATE FUNCTION {schema}.make_ready(p_job_ids uuid[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  made integer;
BEGIN
  WITH ready AS (
    INSERT INTO {schema}.ready_jobs (
      queue_name, tenant_id, rank, ready_at, job_id, pin, concurrency_key, concurrency_limit)
    SELECT j.queue_name, j.tenant_id,
      CASE WHEN q.ageing_seconds IS NULL THEN -j.priority ELSE 0 END,
      CASE WHEN q.ageing_seconds IS NULL THEN j.run_after
        ELSE j.run_after - make_interval(secs => j.priority * q.ageing_seconds) END,
      j.job_id, j.job_type || '@' || j.handler_version, j.concurrency_key, j.concurrency_limit
    FROM {schema}.jobs j LEFT JOIN {schema}.queues q ON q.queue_name = j.queue_name
    WHERE j.job_id = ANY (p_job_ids)
      AND j.state IN ('PENDING', 'FAILED_RETRYABLE') AND j.hold_reason IS NULL AND j.run_after <= clock_timestamp()
    ON CONFLICT DO NOTHING
    RETURNING queue_name
  ), woken AS MATERIALIZED (
    SELECT {schema}.wake(w.queue_name) FROM (SELECT DISTINCT r.queue_name FROM ready r) w
  )
  SELECT count(*) INTO made FROM ready WHERE (SELECT count(*) FROM woken) >= 0;
  RETURN made;
END
$$;

-- Brings back from each line of a key as many jobs as could start, less those that are ready already. False: it is
-- somebody else's turn.
CREATE FUNCTION {schema}.unpark(p_tenant text, p_key text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  running integer;
  head record;
  ready integer;
  next_jobs uuid[];
BEGIN
  IF NOT {schema}.take_turn(p_tenant) THEN
    RETURN false;
  END IF;
  SELECT count(*) INTO running FROM {schema}.slots s WHERE s.tenant_id = p_tenant AND s.concurrency_key = p_key;
  SELECT p.* INTO head FROM {schema}.parked_jobs p WHERE p.tenant_id = p_tenant AND p.concurrency_key = p_key
  ORDER BY p.line, p.rank, p.ready_at, p.job_id LIMIT 1;
  WHILE FOUND LOOP
    SELECT count(*) INTO ready FROM (
      SELECT FROM {schema}.ready_jobs r
      WHERE r.tenant_id = p_tenant AND r.concurrency_key = p_key AND {schema}.line_of(r.queue_name, r.pin) = head.line
      LIMIT head.concurrency_limit) r;
    -- A parked job that has changed meanwhile makes no ready row; then the one behind it is due.
    WHILE running + ready < head.concurrency_limit LOOP
      WITH moved AS (
        DELETE FROM {schema}.parked_jobs WHERE ctid = ANY (ARRAY(
          SELECT p.ctid FROM {schema}.parked_jobs p
          WHERE p.tenant_id = p_tenant AND p.concurrency_key = p_key AND p.line = head.line
          ORDER BY p.rank, p.ready_at, p.job_id LIMIT head.concurrency_limit - running - ready
          FOR UPDATE SKIP LOCKED)) RETURNING job_id
      )
      SELECT array_agg(m.job_id) INTO next_jobs FROM moved m;
      EXIT WHEN next_jobs IS NULL;
      ready := ready + {schema}.make_ready(next_jobs);
    END LOOP;
    SELECT p.* INTO head FROM {schema}.parked_jobs p
    WHERE p.tenant_id = p_tenant AND p.concurrency_key = p_key AND p.line > head.line
    ORDER BY p.line, p.rank, p.ready_at, p.job_id LIMIT 1;
  END LOOP;
  RETURN true;
END
$$;

-- Hands on what has become free: brings parked jobs back and wakes workers. Says how many openings were passed on, and
-- in how many seconds the next is due. What cannot be handed on now, because it is somebody else's turn, is left.
CREATE FUNCTION {schema}.pass_openings(OUT passed integer, OUT next_in_seconds double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  opening record;
BEGIN
  passed := 0;
  FOR opening IN
    SELECT due.tenant_id, due.concurrency_key, array_agg(due.row_id) AS row_ids,
      array_agg(DISTINCT due.queue_name) AS queues
    FROM (
      SELECT o.ctid AS row_id, o.tenant_id, o.concurrency_key, o.queue_name FROM {schema}.openings o
      WHERE o.due_at <= (SELECT clock_timestamp()) ORDER BY o.due_at LIMIT 100 FOR UPDATE SKIP LOCKED
    ) due GROUP BY due.tenant_id, due.concurrency_key
  LOOP
    IF opening.concurrency_key IS NULL OR {schema}.unpark(opening.tenant_id, opening.concurrency_key) THEN
      DELETE FROM {schema}.openings WHERE ctid = ANY (opening.row_ids);
      PERFORM {schema}.wake(w.queue) FROM unnest(opening.queues) AS w(queue);
      passed := passed + 1;
    END IF;
  END LOOP;
  SELECT greatest(0.02, extract(epoch FROM o.due_at - clock_timestamp())) INTO next_in_seconds
  FROM {schema}.openings o ORDER BY o.due_at LIMIT 1;
END
$$;

-- Lets a cap that has just been set count the jobs that run already. Everybody who is starting jobs without knowing of
-- the cap holds a lock on claims since before they read the tenant's row, and those that come later wait for our
-- commit: between the two nothing is missed. For the transaction that sets the cap.
CREATE FUNCTION {schema}.count_running(p_tenant text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '2s'
AS $$
BEGIN
  IF NOT {schema}.sees_every_tenant() THEN
    RAISE EXCEPTION 'only somebody who sees every tenant may change limits' USING ERRCODE = 'insufficient_privilege';
  END IF;
  LOCK TABLE {schema}.claims IN SHARE MODE;
  WITH uncounted AS (
    UPDATE {schema}.jobs j SET holds_slot = true
    WHERE j.job_id = ANY (ARRAY(
        SELECT unnest(c.job_ids) FROM {schema}.claims c WHERE p_tenant = ANY (c.tenant_ids)))
      AND j.tenant_id = p_tenant AND j.state = 'RUNNING' AND j.holds_slot IS NULL
    RETURNING j.job_id
  )
  INSERT INTO {schema}.slots (tenant_id, concurrency_key, job_id)
  SELECT p_tenant, '', u.job_id FROM uncounted u ON CONFLICT DO NOTHING;
END
$$;

REVOKE ALL ON FUNCTION
  {schema}.line_of, {schema}.take_turn, {schema}.start_room, {schema}.spend_starts, {schema}.fitting, {schema}.admit,
  {schema}.park, {schema}.jobs_slot, {schema}.make_ready, {schema}.unpark, {schema}.pass_openings,
  {schema}.count_running FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.make_ready, {schema}.pass_openings TO {role}_worker;
GRANT EXECUTE ON FUNCTION {schema}.count_running TO {role}_worker, {role}_server;
