-- Sharing between tenants: weights, caps, rates and quotas, exact where they promise to be and without a row that
-- everybody waits for. Whoever has no limit pays nothing (docs/decisions/0013-sharing-between-tenants.md).

-- What a tenant may do. One without a row has the defaults.
CREATE TABLE {schema}.tenants (
  tenant_id text NOT NULL PRIMARY KEY CHECK (length(tenant_id) BETWEEN 1 AND 200),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Shares of a queue are in proportion to the weights.
  weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
  -- How many of its jobs may run at a time, and how many may wait.
  max_running integer CHECK (max_running BETWEEN 0 AND 1000000),
  max_waiting integer CHECK (max_waiting BETWEEN 0 AND 1000000),
  -- So many starts, and so many submissions, in so many seconds.
  start_limit integer CHECK (start_limit BETWEEN 1 AND 1000000),
  start_seconds integer CHECK (start_seconds > 0),
  enqueue_limit integer CHECK (enqueue_limit BETWEEN 1 AND 1000000),
  enqueue_seconds integer CHECK (enqueue_seconds > 0),
  -- How long finished jobs are kept; NULL: as long as everybody's.
  retention_seconds double precision CHECK (retention_seconds > 0),
  CONSTRAINT rates_have_a_span
    CHECK ((start_limit IS NULL) = (start_seconds IS NULL) AND (enqueue_limit IS NULL) = (enqueue_seconds IS NULL))
);

-- One row per running job that counts against a cap: its tenant's, its key's, or both. The trigger jobs_slot keeps
-- it; concurrency_key is '' where the job has none.
CREATE TABLE {schema}.slots (
  job_id uuid NOT NULL,
  tenant_id text NOT NULL,
  concurrency_key text NOT NULL,
  PRIMARY KEY (tenant_id, concurrency_key, job_id)
);

-- Jobs that a claim met while their key was full, out of the way of those behind them. Jobs of one key that the same
-- workers can start are one line.
CREATE TABLE {schema}.parked_jobs (
  ready_at timestamptz NOT NULL,
  job_id uuid NOT NULL,
  rank integer NOT NULL,
  concurrency_limit integer NOT NULL,
  tenant_id text NOT NULL,
  concurrency_key text NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (tenant_id, concurrency_key, line, rank, ready_at, job_id)
);

-- Moments at which a limit may let somebody through: a slot became free, a rate allows the next start. Consumed by
-- pass_openings. While jobs of a key are parked, one of them runs, is ready, or has an opening on the way.
CREATE TABLE {schema}.openings (
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  opening_id bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id text NOT NULL,
  queue_name text NOT NULL,
  concurrency_key text,
  PRIMARY KEY (due_at, opening_id)
);

-- Locked by whoever decides about a tenant's limits; holds what the start rate has saved up.
CREATE TABLE {schema}.turns (
  tenant_id text NOT NULL PRIMARY KEY,
  tokens double precision NOT NULL DEFAULT 'infinity',
  counted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the next start is allowed, while it is not.
  opens_at timestamptz
) WITH (fillfactor = 50);

-- How many jobs wait that count against their tenant's quota: the sum over all connections, each of which writes a row
-- of its own. No row is one that two transactions would have to wait for.
CREATE TABLE {schema}.waiting_counts (
  tenant_id text NOT NULL,
  backend integer NOT NULL,
  jobs bigint NOT NULL,
  PRIMARY KEY (tenant_id, backend)
) WITH (fillfactor = 50);

-- Submissions of tenants with a rate, counted per tenth of its span, again by connection.
CREATE TABLE {schema}.submissions (
  at timestamptz NOT NULL,
  backend integer NOT NULL,
  jobs bigint NOT NULL,
  tenant_id text NOT NULL,
  PRIMARY KEY (tenant_id, at, backend)
);

-- Only jobs with a key are in it.
CREATE INDEX idx_ready_key ON {schema}.ready_jobs (tenant_id, concurrency_key) WHERE concurrency_key IS NOT NULL;

ALTER TABLE {schema}.slots SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE {schema}.parked_jobs SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE {schema}.openings SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE {schema}.submissions SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE {schema}.waiting_counts SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

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

-- Of ready rows that a claim has locked, those of one tenant that its caps and its rate let start, in their order. In
-- the tenant's turn only.
CREATE FUNCTION {schema}.fitting(p_tenant text, p_rows tid[]) RETURNS tid[]
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
  room constant integer := {schema}.start_room(p_tenant);
  fits tid[];
  queue text;
BEGIN
  WITH candidate AS MATERIALIZED (
    SELECT r.ctid AS row_id, r.rank, r.ready_at, r.job_id, r.concurrency_key, r.concurrency_limit, row_number()
      OVER (PARTITION BY r.concurrency_key ORDER BY r.rank, r.ready_at, r.job_id) AS place
    FROM {schema}.ready_jobs r WHERE r.ctid = ANY (p_rows)
  ), running AS MATERIALIZED (
    SELECT k.concurrency_key, (
      SELECT count(*) FROM {schema}.slots s
      WHERE s.tenant_id = p_tenant AND s.concurrency_key = k.concurrency_key) AS jobs
    FROM (SELECT DISTINCT c.concurrency_key FROM candidate c WHERE c.concurrency_key IS NOT NULL) k
  ), fit AS (
    SELECT c.row_id FROM candidate c LEFT JOIN running ON running.concurrency_key = c.concurrency_key
    WHERE c.concurrency_key IS NULL OR running.jobs + c.place <= c.concurrency_limit
    ORDER BY c.rank, c.ready_at, c.job_id LIMIT room
  )
  SELECT array_agg(f.row_id) INTO fits FROM fit f;
  SELECT r.queue_name INTO queue FROM {schema}.ready_jobs r WHERE r.ctid = p_rows[1];
  PERFORM {schema}.spend_starts(
    p_tenant, coalesce(cardinality(fits), 0), coalesce(cardinality(fits), 0) < cardinality(p_rows), queue);
  RETURN fits;
END
$$;

-- Moves ready rows whose keys are full out of the way, and up to 1,000 more of those keys: a thousand jobs of one key
-- must not take a thousand claims to get past. Only a key that has as many running as the job allows counts
-- as full, because the end of one of those is what brings the job back. In the tenant's turn only.
CREATE FUNCTION {schema}.park(p_tenant text, p_rows tid[]) RETURNS integer
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
DECLARE
  parked integer;
BEGIN
  WITH running AS MATERIALIZED (
    SELECT k.concurrency_key, (
      SELECT count(*) FROM {schema}.slots s
      WHERE s.tenant_id = p_tenant AND s.concurrency_key = k.concurrency_key) AS jobs
    FROM (
      SELECT DISTINCT r.concurrency_key FROM {schema}.ready_jobs r
      WHERE r.ctid = ANY (p_rows) AND r.concurrency_key IS NOT NULL
    ) k
  ), crowd AS MATERIALIZED (
    SELECT r.ctid AS row_id FROM {schema}.ready_jobs r JOIN running ON running.concurrency_key = r.concurrency_key
    WHERE r.ctid = ANY (p_rows) AND r.concurrency_limit <= running.jobs
    UNION
    (SELECT more.row_id FROM running CROSS JOIN LATERAL (
       SELECT r.ctid AS row_id FROM {schema}.ready_jobs r
       WHERE r.tenant_id = p_tenant AND r.concurrency_key = running.concurrency_key
         AND r.concurrency_limit <= running.jobs
       LIMIT 1000 FOR UPDATE SKIP LOCKED
     ) more LIMIT 1000)
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

-- Which of the ready rows that a claim has locked it may consume: those without limits, and what their limits let
-- start. Others stay ready, or are parked where their key is full. `keyed` are the jobs with a key among the rows.
CREATE FUNCTION {schema}.admit(p_rows tid[], OUT row_ids tid[], OUT keyed uuid[], OUT parked integer)
LANGUAGE plpgsql AS $$
DECLARE
  share record;
BEGIN
  row_ids := '{}';
  parked := 0;
  FOR share IN
    SELECT r.tenant_id, array_agg(r.ctid ORDER BY r.rank, r.ready_at, r.job_id) AS row_ids,
      bool_or(r.concurrency_key IS NOT NULL) AS keyed,
      bool_or(t.max_running IS NOT NULL OR t.start_limit IS NOT NULL) AS limited
    FROM {schema}.ready_jobs r LEFT JOIN {schema}.tenants t ON t.tenant_id = r.tenant_id
    WHERE r.ctid = ANY (p_rows) GROUP BY r.tenant_id
  LOOP
    IF NOT (share.keyed OR share.limited) THEN
      row_ids := row_ids || share.row_ids;
    ELSIF {schema}.take_turn(share.tenant_id) THEN
      row_ids := row_ids || {schema}.fitting(share.tenant_id, share.row_ids);
      IF share.keyed THEN
        parked := parked + {schema}.park(share.tenant_id, share.row_ids);
      END IF;
    END IF;
  END LOOP;
  keyed := ARRAY(
    SELECT r.job_id FROM {schema}.ready_jobs r WHERE r.ctid = ANY (row_ids) AND r.concurrency_key IS NOT NULL);
END
$$;

-- Whether one job may start by its id as far as limits go. One that runs on a lease that ran out keeps its slot.
CREATE FUNCTION {schema}.may_start(p_job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT j.tenant_id, j.queue_name, j.concurrency_key, j.concurrency_limit INTO job
  FROM {schema}.jobs j LEFT JOIN {schema}.tenants t ON t.tenant_id = j.tenant_id
  WHERE j.job_id = p_job_id AND j.state <> 'RUNNING'
    AND (j.concurrency_key IS NOT NULL OR t.max_running IS NOT NULL OR t.start_limit IS NOT NULL);
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  IF NOT {schema}.take_turn(job.tenant_id) OR coalesce({schema}.start_room(job.tenant_id) < 1, false) THEN
    RETURN false;
  END IF;
  IF job.concurrency_limit <= (
    SELECT count(*) FROM {schema}.slots s
    WHERE s.tenant_id = job.tenant_id AND s.concurrency_key = job.concurrency_key)
  THEN
    RETURN false;
  END IF;
  PERFORM {schema}.spend_starts(job.tenant_id, 1, false, job.queue_name);
  RETURN true;
END
$$;

-- A slot is taken and given back with the change of state, whoever makes it: settle, reclaim, a person with psql. No
-- lock is waited for here; that others may start is left to pass_openings.
CREATE FUNCTION {schema}.jobs_slot() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
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
FOR EACH ROW WHEN (NEW.holds_slot IS TRUE AND (OLD.state = 'RUNNING') <> (NEW.state = 'RUNNING'))
EXECUTE FUNCTION {schema}.jobs_slot();

-- A job counts against its tenant's quota while it waits, whoever ends that.
CREATE FUNCTION {schema}.jobs_counted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO {schema}.waiting_counts AS w (tenant_id, backend, jobs)
  VALUES (NEW.tenant_id, pg_backend_pid(), CASE WHEN NEW.state IN ('PENDING', 'FAILED_RETRYABLE') THEN 1 ELSE -1 END)
  ON CONFLICT (tenant_id, backend) DO UPDATE SET jobs = w.jobs + excluded.jobs;
  RETURN NULL;
END
$$;

CREATE TRIGGER jobs_counted AFTER UPDATE ON {schema}.jobs
FOR EACH ROW WHEN (NEW.counted IS TRUE
  AND (OLD.state IN ('PENDING', 'FAILED_RETRYABLE')) <> (NEW.state IN ('PENDING', 'FAILED_RETRYABLE')))
EXECUTE FUNCTION {schema}.jobs_counted();

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

-- Hands on what has become free: brings parked jobs back and wakes workers. Returns the seconds until the next
-- opening, NULL if there is none. What cannot be handed on now, because it is somebody else's turn, is left.
CREATE FUNCTION {schema}.pass_openings() RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  opening record;
BEGIN
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
    END IF;
  END LOOP;
  RETURN (
    SELECT greatest(0.02, extract(epoch FROM o.due_at - clock_timestamp())) FROM {schema}.openings o
    ORDER BY o.due_at LIMIT 1);
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

-- Accounts and reports by time. These hold a few bytes per megabyte of their table, and their columns never change.
-- An index made on an empty table keeps its first megabyte up to date with every insert; the rest is left to vacuum,
-- and so is that.
DO $$
DECLARE
  moment text;
  name text;
BEGIN
  FOREACH moment IN ARRAY ARRAY['jobs.created_at', 'attempts.started_at', 'results.created_at'] LOOP
    name := format('idx_%s', replace(moment, '.', '_'));
    EXECUTE format('CREATE INDEX %I ON {schema}.%I USING brin (%I)', name, split_part(moment, '.', 1),
      split_part(moment, '.', 2));
    PERFORM brin_desummarize_range(format('{schema}.%I', name)::regclass, 0);
  END LOOP;
END
$$;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'tenants', 'slots', 'parked_jobs', 'openings', 'turns', 'waiting_counts', 'submissions'
  ] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['tenants', 'slots', 'parked_jobs'] LOOP
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I FOR SELECT TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant()))', name);
  END LOOP;
END
$$;

-- A tenant sees its own limits; only who works for all tenants changes them. The rest is written by functions.
GRANT SELECT, INSERT, UPDATE ON {schema}.tenants TO {role}_worker;
GRANT SELECT ON {schema}.tenants TO {role}_server, {role}_tenant;
GRANT SELECT ON {schema}.slots, {schema}.parked_jobs TO {role}_worker, {role}_server;
GRANT SELECT ON {schema}.turns, {schema}.openings TO {role}_worker;

REVOKE ALL ON FUNCTION
  {schema}.line_of, {schema}.take_turn, {schema}.start_room, {schema}.spend_starts, {schema}.fitting, {schema}.park,
  {schema}.admit, {schema}.may_start, {schema}.jobs_slot, {schema}.jobs_counted, {schema}.make_ready, {schema}.unpark,
  {schema}.pass_openings, {schema}.count_running FROM PUBLIC;
REVOKE ALL ON FUNCTION
  {schema}.count_waiting, {schema}.count_new, {schema}.enqueue_delay, {schema}.check_quotas,
  {schema}.note_submission
  FROM {role}_worker, {role}_server, {role}_tenant;
GRANT EXECUTE ON FUNCTION {schema}.make_ready, {schema}.pass_openings, {schema}.count_running TO {role}_worker;
