-- What an attempt remembers, and what it does outside. Rows are written by functions only: each holds the job's row
-- while it looks whether the attempt still has the job, so that a reclaim comes before the write or after it.
-- docs/decisions/0012-steps-and-effects.md

-- In the order of caution: where two kinds are named for one effect, the later one counts.
CREATE TYPE {schema}.oracle_effect_kind AS ENUM ('database', 'idempotent', 'reconcilable', 'unsafe');

CREATE TYPE {schema}.oracle_effect_state AS ENUM ('PLANNED', 'DISPATCHED', 'CONFIRMED', 'FAILED', 'IN_DOUBT');

CREATE TABLE {schema}.steps (
  job_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The place among the handler's calls.
  seq integer NOT NULL,
  -- 0: taken over from the job that this one replays.
  attempt_no integer NOT NULL,
  tenant_id text NOT NULL,
  name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 800),
  value_hash text NOT NULL,
  value jsonb,
  -- A large value is kept as an artifact: its canonical JSON, so value_hash is the hash of its bytes.
  artifact_id uuid,
  PRIMARY KEY (job_id, name),
  CONSTRAINT inline_or_artifact CHECK ((value IS NULL) <> (artifact_id IS NULL))
) WITH (toast_tuple_target = 512);

CREATE TABLE {schema}.effects (
  job_id uuid NOT NULL,
  effect_id uuid NOT NULL,
  planned_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  approved_at timestamptz,
  dispatched_at timestamptz,
  settled_at timestamptz,
  -- NULL on an effect's ordinary way, so that the index on it costs nothing there.
  in_doubt_at timestamptz,
  seq integer NOT NULL,
  -- The attempt that planned it or sent it last; 0: taken over from the job that this one replays.
  attempt_no integer NOT NULL,
  dispatches integer NOT NULL DEFAULT 0,
  kind {schema}.oracle_effect_kind NOT NULL,
  state {schema}.oracle_effect_state NOT NULL,
  tenant_id text NOT NULL,
  name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 800),
  idempotency_key text GENERATED ALWAYS AS (effect_id::text) STORED,
  request_hash text NOT NULL,
  response_hash text,
  approved_by text,
  resolved_by text,
  evidence text,
  request jsonb NOT NULL,
  response jsonb,
  error_json jsonb,
  PRIMARY KEY (job_id, name),
  CONSTRAINT sent_has_its_time CHECK (state = 'PLANNED' OR resolved_by IS NOT NULL OR dispatched_at IS NOT NULL),
  CONSTRAINT settled_has_its_time CHECK ((state IN ('CONFIRMED', 'FAILED')) = (settled_at IS NOT NULL)),
  CONSTRAINT doubt_has_its_time CHECK ((state = 'IN_DOUBT') = (in_doubt_at IS NOT NULL)),
  CONSTRAINT confirmed_has_a_response
    CHECK ((state = 'CONFIRMED') = (response IS NOT NULL AND response_hash IS NOT NULL)),
  CONSTRAINT resolved_with_evidence CHECK (resolved_by IS NULL OR evidence IS NOT NULL)
) WITH (fillfactor = 60, toast_tuple_target = 512);

CREATE UNIQUE INDEX effects_id ON {schema}.effects (effect_id);
CREATE INDEX effects_in_doubt ON {schema}.effects (in_doubt_at) WHERE in_doubt_at IS NOT NULL;

CREATE TRIGGER steps_immutable AFTER UPDATE ON {schema}.steps
FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('a remembered step never changes');

-- One name, one request; what is confirmed stays; a plan that nobody approved is not sent; what a person has
-- declared failed is not tried again.
CREATE TRIGGER effects_legal_change AFTER UPDATE ON {schema}.effects
FOR EACH ROW WHEN (
  NEW.job_id <> OLD.job_id OR NEW.name <> OLD.name OR NEW.effect_id <> OLD.effect_id
  OR NEW.tenant_id <> OLD.tenant_id OR NEW.request_hash <> OLD.request_hash OR NEW.request <> OLD.request
  OR NOT CASE OLD.state
    WHEN 'PLANNED' THEN NEW.state IN ('PLANNED', 'FAILED') OR (NEW.state = 'DISPATCHED' AND OLD.approved_at IS NOT NULL)
    WHEN 'DISPATCHED' THEN NEW.state <> 'PLANNED'
    WHEN 'IN_DOUBT' THEN NEW.state <> 'PLANNED' OR NEW.resolved_by IS NOT NULL
    WHEN 'FAILED' THEN NEW.state = 'DISPATCHED' AND OLD.resolved_by IS NULL
    ELSE false
  END)
EXECUTE FUNCTION {schema}.refuse('an effect does not go this way');

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['steps', 'effects'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant()))', name);
    EXECUTE format('GRANT SELECT ON {schema}.%I TO {role}_worker, {role}_server, {role}_tenant', name);
  END LOOP;
END
$$;

-- An effect's id and idempotency key, made from what it is: a version 8 UUID, which every provider's key field takes.
CREATE FUNCTION {schema}.effect_id(job_id uuid, name text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(set_byte(set_byte(substr(digest, 1, 16), 6, (get_byte(digest, 6) & 15) | 128),
    8, (get_byte(digest, 8) & 63) | 128), 'hex')::uuid
  FROM (SELECT sha256(convert_to(job_id::text || ':' || name, 'UTF8')) AS digest) d
$$;

-- Remembers steps of many jobs in one statement; returns the attempts that have lost their jobs, none as a rule. A name
-- that is taken raises unique_violation.
-- Locks: the jobs, which a reclaim must wait for.
CREATE FUNCTION {schema}.remember_steps(
  p_job_ids uuid[], p_attempt_ids uuid[], p_names text[], p_seqs integer[], p_values text[], p_hashes text[],
  p_artifact_ids uuid[]
) RETURNS uuid[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
  written integer;
BEGIN
  WITH fenced AS MATERIALIZED (
    SELECT j.job_id, j.attempt_count, j.tenant_id, s.name, s.seq, s.value, s.value_hash, s.artifact_id
    FROM unnest(p_job_ids, p_attempt_ids, p_names, p_seqs, p_values, p_hashes, p_artifact_ids)
      AS s(job_id, attempt_id, name, seq, value, value_hash, artifact_id)
    JOIN {schema}.jobs j ON j.job_id = s.job_id AND j.current_attempt_id = s.attempt_id AND j.state = 'RUNNING'
    ORDER BY j.job_id FOR NO KEY UPDATE OF j
  )
  INSERT INTO {schema}.steps (job_id, attempt_no, tenant_id, name, seq, value, value_hash, artifact_id)
  SELECT f.job_id, f.attempt_count, f.tenant_id, f.name, f.seq, f.value::jsonb, f.value_hash, f.artifact_id
  FROM fenced f;
  GET DIAGNOSTICS written = ROW_COUNT;
  IF written = cardinality(p_job_ids) THEN
    RETURN '{}';
  END IF;
  RETURN ARRAY(
    SELECT s.attempt_id FROM unnest(p_job_ids, p_attempt_ids) AS s(job_id, attempt_id)
    WHERE NOT EXISTS (
      SELECT FROM {schema}.jobs j
      WHERE j.job_id = s.job_id AND j.current_attempt_id = s.attempt_id AND j.state = 'RUNNING'));
END
$$;

-- Commits the intents of effects, and returns those that may be sent now, with what is left of the lease. What is
-- missing has another request, an outcome, a doubt that must be cleared first, no approval, a cancel asked for, or no
-- lease: an outcome may come after the lease's end, an intent may not.
-- An intent that this same attempt has committed already comes back: the reply to it was lost, and nothing was sent.
-- Locks: the jobs.
CREATE FUNCTION {schema}.begin_effects(
  p_job_ids uuid[], p_attempt_ids uuid[], p_names text[], p_seqs integer[], p_kinds text[], p_requests text[],
  p_request_hashes text[]
) RETURNS TABLE (job_id uuid, name text, effect_id uuid, lease_left float8)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH fenced AS MATERIALIZED (
    SELECT j.job_id, j.attempt_count, j.tenant_id, b.name, b.seq, b.kind, b.request, b.request_hash
    FROM unnest(p_job_ids, p_attempt_ids, p_names, p_seqs, p_kinds, p_requests, p_request_hashes)
      AS b(job_id, attempt_id, name, seq, kind, request, request_hash)
    JOIN {schema}.jobs j ON j.job_id = b.job_id AND j.current_attempt_id = b.attempt_id AND j.state = 'RUNNING'
      AND j.cancel_requested_at IS NULL AND j.lease_expires_at > clock_timestamp()
    ORDER BY j.job_id FOR NO KEY UPDATE OF j
  )
  INSERT INTO {schema}.effects AS e (
    job_id, effect_id, attempt_no, tenant_id, name, seq, kind, state, request, request_hash, dispatched_at, dispatches)
  SELECT f.job_id, {schema}.effect_id(f.job_id, f.name), f.attempt_count, f.tenant_id, f.name, f.seq,
    f.kind::{schema}.oracle_effect_kind, 'DISPATCHED', f.request::jsonb, f.request_hash, clock_timestamp(), 1
  FROM fenced f
  ON CONFLICT (job_id, name) DO UPDATE SET
    state = 'DISPATCHED', attempt_no = excluded.attempt_no, kind = excluded.kind, dispatched_at = clock_timestamp(),
    dispatches = e.dispatches + (e.state <> 'DISPATCHED')::integer, settled_at = NULL, in_doubt_at = NULL,
    error_json = NULL, resolved_by = NULL, evidence = NULL
  WHERE e.request_hash = excluded.request_hash AND CASE e.state
    WHEN 'PLANNED' THEN e.approved_at IS NOT NULL
    WHEN 'FAILED' THEN e.resolved_by IS NULL
    WHEN 'CONFIRMED' THEN false
    ELSE (e.state = 'DISPATCHED' AND e.attempt_no = excluded.attempt_no)
      OR greatest(e.kind, excluded.kind) = 'idempotent'
    END
  RETURNING e.job_id, e.name, e.effect_id, (
    SELECT extract(epoch FROM j.lease_expires_at - clock_timestamp())::float8
    FROM {schema}.jobs j WHERE j.job_id = e.job_id);
END
$$;

-- Records outcomes: of calls this attempt has made, and of doubts it has cleared. Returns those it recorded.
-- Locks: the jobs, then the effects.
CREATE FUNCTION {schema}.end_effects(
  p_job_ids uuid[], p_attempt_ids uuid[], p_names text[], p_states text[], p_responses text[],
  p_response_hashes text[], p_errors text[]
) RETURNS TABLE (job_id uuid, name text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH fenced AS MATERIALIZED (
    SELECT j.job_id, o.name, o.state, o.response, o.response_hash, o.error
    FROM unnest(p_job_ids, p_attempt_ids, p_names, p_states, p_responses, p_response_hashes, p_errors)
      AS o(job_id, attempt_id, name, state, response, response_hash, error)
    JOIN {schema}.jobs j ON j.job_id = o.job_id AND j.current_attempt_id = o.attempt_id AND j.state = 'RUNNING'
    ORDER BY j.job_id FOR NO KEY UPDATE OF j
  )
  UPDATE {schema}.effects e SET
    state = f.state::{schema}.oracle_effect_state, response = f.response::jsonb, response_hash = f.response_hash,
    error_json = f.error::jsonb,
    settled_at = CASE WHEN f.state <> 'IN_DOUBT' THEN clock_timestamp() END,
    in_doubt_at = CASE WHEN f.state = 'IN_DOUBT' THEN clock_timestamp() END
  FROM fenced f
  WHERE e.job_id = f.job_id AND e.name = f.name AND e.state IN ('DISPATCHED', 'IN_DOUBT')
  RETURNING e.job_id, e.name;
END
$$;

-- Records a plan, unless it is there already, and approves it where a policy does. Returns nothing when the lease is
-- lost or a cancel was asked for; otherwise every effect of the job, for the caller to compare.
-- Locks: the job, in a statement of its own: the next one sees what was committed while it waited.
CREATE FUNCTION {schema}.plan_effects(
  p_job_id uuid, p_attempt_id uuid, p_names text[], p_seqs integer[], p_kinds text[], p_requests text[],
  p_request_hashes text[], p_approved_by text
) RETURNS TABLE (name text, request_hash text, state text, approved boolean, resolved boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  job {schema}.jobs;
BEGIN
  SELECT j.* INTO job FROM {schema}.jobs j
  WHERE j.job_id = p_job_id AND j.current_attempt_id = p_attempt_id AND j.state = 'RUNNING'
    AND j.cancel_requested_at IS NULL AND j.lease_expires_at > clock_timestamp()
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.effects (
    job_id, effect_id, attempt_no, tenant_id, name, seq, kind, state, request, request_hash)
  SELECT p_job_id, {schema}.effect_id(p_job_id, p.name), job.attempt_count, job.tenant_id, p.name, p.seq,
    p.kind::{schema}.oracle_effect_kind, 'PLANNED', p.request::jsonb, p.request_hash
  FROM unnest(p_names, p_seqs, p_kinds, p_requests, p_request_hashes) AS p(name, seq, kind, request, request_hash)
  WHERE NOT EXISTS (SELECT FROM {schema}.effects e WHERE e.job_id = p_job_id);
  UPDATE {schema}.effects e SET approved_at = clock_timestamp(), approved_by = p_approved_by
  WHERE p_approved_by IS NOT NULL AND e.job_id = p_job_id AND e.state = 'PLANNED' AND e.approved_at IS NULL;
  RETURN QUERY
    SELECT e.name, e.request_hash, e.state::text, e.approved_at IS NOT NULL, e.resolved_by IS NOT NULL
    FROM {schema}.effects e WHERE e.job_id = p_job_id;
END
$$;

-- Records the statements that a job commits together with its result. Runs in that transaction, before it settles.
CREATE FUNCTION {schema}.record_commits(
  p_job_id uuid, p_attempt_id uuid, p_names text[], p_seqs integer[], p_requests text[], p_request_hashes text[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO {schema}.effects (
    job_id, effect_id, attempt_no, tenant_id, name, seq, kind, state, request, request_hash, response, response_hash,
    dispatched_at, settled_at, dispatches)
  SELECT j.job_id, {schema}.effect_id(j.job_id, c.name), j.attempt_count, j.tenant_id, c.name, c.seq,
    'database', 'CONFIRMED', c.request::jsonb, c.request_hash, 'null',
    encode(sha256('null'), 'hex'), clock_timestamp(), clock_timestamp(), 1
  FROM unnest(p_names, p_seqs, p_requests, p_request_hashes) AS c(name, seq, request, request_hash)
  JOIN {schema}.jobs j ON j.job_id = p_job_id AND j.current_attempt_id = p_attempt_id AND j.state = 'RUNNING'
$$;

-- What a job remembered and did, and the artifacts of the attempt that succeeded, as one hash; '-' for nothing.
CREATE FUNCTION {schema}.records_hash(p_job_id uuid, p_attempt_id uuid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(encode(sha256(convert_to(string_agg(line, E'\n' ORDER BY line COLLATE "C"), 'UTF8')), 'hex'), '-')
  FROM (
    SELECT 'step ' || to_json(s.name)::text || ' ' || s.value_hash AS line
    FROM {schema}.steps s WHERE s.job_id = p_job_id
    UNION ALL
    SELECT 'effect ' || to_json(e.name)::text || ' ' || e.kind || ' ' || e.state || ' ' || e.request_hash || ' '
      || coalesce(e.response_hash, '-')
    FROM {schema}.effects e WHERE e.job_id = p_job_id
    UNION ALL
    SELECT 'artifact ' || a.sha256 FROM {schema}.artifacts a
    WHERE a.job_id = p_job_id AND a.attempt_id = p_attempt_id
  ) records
$$;

REVOKE ALL ON FUNCTION
  {schema}.effect_id, {schema}.remember_steps, {schema}.begin_effects, {schema}.end_effects, {schema}.plan_effects,
  {schema}.record_commits, {schema}.records_hash FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  {schema}.effect_id, {schema}.remember_steps, {schema}.begin_effects, {schema}.end_effects, {schema}.plan_effects,
  {schema}.record_commits, {schema}.records_hash TO {role}_worker;
