-- The record of every job, and the narrow tables that make it findable.
--
-- `jobs` is the truth. No index on it covers a column that changes on a job's ordinary way, so claim and
-- settle are HOT updates; what must be found by state is found through `ready_jobs`, `timers` and `claims`.

CREATE TYPE {schema}.oracle_job_state AS ENUM (
  'PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED_RETRYABLE', 'FAILED_TERMINAL', 'CANCELLED'
);

CREATE TYPE {schema}.oracle_attempt_status AS ENUM (
  'RUNNING', 'SUCCEEDED', 'FAILED', 'LEASE_EXPIRED', 'RELEASED', 'CANCELLED', 'SUPERSEDED'
);

-- A version 7 UUID: ids grow with time, so that lists of the newest jobs need no other index. Postgres makes them by
-- itself from version 18 on.
CREATE FUNCTION {schema}.new_id() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
    substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

-- What a submission may say. Domains, not CHECKs of the table: those are read from the catalogue and tested with every
-- change of a job's state, at the price of a fifth of a claim, though none of these columns changes on a job's way.
-- Bytes, not characters: counting them costs nothing. Written flat: several BETWEENs are printed in another way once they
-- were dumped and restored, which looks like drift.
CREATE DOMAIN {schema}.short_name AS text
  CONSTRAINT name_is_short CHECK (octet_length(VALUE) >= 1 AND octet_length(VALUE) <= 800);
CREATE DOMAIN {schema}.job_key AS text COLLATE "C"
  CONSTRAINT key_is_short CHECK (octet_length(VALUE) >= 1 AND octet_length(VALUE) <= 4000);
CREATE DOMAIN {schema}.job_priority AS integer
  CONSTRAINT priority_is_bounded CHECK (VALUE >= -1000000 AND VALUE <= 1000000);
CREATE DOMAIN {schema}.most_attempts AS integer
  CONSTRAINT attempts_are_bounded CHECK (VALUE >= 1 AND VALUE <= 1000);
CREATE DOMAIN {schema}.timeout AS integer
  CONSTRAINT timeout_is_bounded CHECK (VALUE >= 1 AND VALUE <= 604800);
CREATE DOMAIN {schema}.most_running AS integer
  CONSTRAINT concurrency_is_bounded CHECK (VALUE >= 1 AND VALUE <= 10000);

-- Columns lie in three parts: what a job is, what changes on its way, and what most jobs have not or never change. A change
-- is logged from its first byte to its last, so those that change together lie together. What the indexes ask for comes first,
-- because every change compares it.
CREATE TABLE {schema}.jobs (
  job_id uuid NOT NULL PRIMARY KEY DEFAULT {schema}.new_id(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant_id {schema}.short_name NOT NULL DEFAULT 'default',
  queue_name {schema}.short_name NOT NULL DEFAULT 'default',
  job_type {schema}.short_name NOT NULL,
  -- By bytes, so that keys with the same beginning lie together whatever the database's language.
  idempotency_key {schema}.job_key NOT NULL,
  spec_hash text NOT NULL,

  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  state {schema}.oracle_job_state NOT NULL DEFAULT 'PENDING',
  attempt_count integer NOT NULL DEFAULT 0,
  interruptions integer NOT NULL DEFAULT 0,
  run_after timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at timestamptz,
  completed_at timestamptz,
  lease_expires_at timestamptz,
  -- The attempt that runs, or that succeeded: these columns, attempt_count and the job's times are all there is of it
  -- (see the view attempts). One that ends in another way goes to past_attempts.
  current_attempt_id uuid,
  attempt_started_at timestamptz,
  worker_id text,
  attempt_version text,
  -- Set by a start that counts against a limit: the job then has a row in slots until it stops running.
  holds_slot boolean,

  priority {schema}.job_priority NOT NULL DEFAULT 0,
  max_attempts {schema}.most_attempts NOT NULL DEFAULT 3,
  timeout_seconds {schema}.timeout,
  -- At most so many jobs with the same key run at a time.
  concurrency_limit {schema}.most_running,
  -- Set for jobs of tenants with a quota: while it waits it counts against it.
  counted boolean,
  deadline timestamptz,
  cancel_requested_at timestamptz,
  replay_of uuid,
  -- Set only for jobs submitted with dedupe 'active', cleared when they end.
  active_spec_hash text,
  handler_version text,
  concurrency_key {schema}.short_name,
  hold_reason text,
  error_json jsonb,
  policy_flags jsonb NOT NULL DEFAULT '{}',
  input_payload jsonb NOT NULL,

  -- Postgres reads these anew with every statement that changes a job, so they are few; jobs_legal_change in 004_guards.sql
  -- tests the rest.
  CONSTRAINT completed_requires_timestamp
    CHECK ((state IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED')) = (completed_at IS NOT NULL)),
  CONSTRAINT lease_only_when_running
    CHECK ((state = 'RUNNING') = (lease_expires_at IS NOT NULL)),
  CONSTRAINT held_only_while_waiting
    CHECK (hold_reason IS NULL OR state IN ('PENDING', 'FAILED_RETRYABLE')),
  CONSTRAINT key_has_a_limit
    CHECK ((concurrency_key IS NULL) = (concurrency_limit IS NULL))
-- A page must take every row of it twice: as it was claimed and as it ended.
) WITH (fillfactor = 40, toast_tuple_target = 512);

-- Attempts that ended otherwise than by success, each written once.
CREATE TABLE {schema}.past_attempts (
  job_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempt_no integer NOT NULL,
  status {schema}.oracle_attempt_status NOT NULL,
  tenant_id text NOT NULL,
  worker_id text NOT NULL,
  handler_version text,
  cause text,
  error_message text,
  error_json jsonb,
  -- What an attempt brought that had lost its lease: evidence, never a result.
  late_output jsonb,
  PRIMARY KEY (job_id, attempt_no),
  CONSTRAINT neither_runs_nor_succeeded CHECK (status NOT IN ('RUNNING', 'SUCCEEDED'))
);

-- What an attempt says of itself while it runs. Most say nothing and have no row.
CREATE TABLE {schema}.attempt_reports (
  job_id uuid NOT NULL,
  -- The attempt's, so that what was used can be counted by time.
  started_at timestamptz NOT NULL,
  attempt_no integer NOT NULL,
  tenant_id text NOT NULL,
  -- The latest word of the attempt: {fraction, message?, details?, at}.
  progress jsonb,
  -- What it has used of models and other services, by its own word: of what, and in which currency, is its own affair.
  tokens bigint,
  cost double precision,
  -- Why it will be lost, where that is known before its lease has run out.
  cause text,
  PRIMARY KEY (job_id, attempt_no)
) WITH (fillfactor = 50);

-- Every attempt of every job, wherever it is kept. A function in SQL, which Postgres puts in the place of its call, because
-- it reads with the caller's rights on every version; a view by itself does so from 15 on.
CREATE FUNCTION {schema}.all_attempts() RETURNS TABLE (
  job_id uuid, attempt_no integer, attempt_id uuid, tenant_id text, worker_id text, handler_version text,
  status {schema}.oracle_attempt_status, started_at timestamptz, ended_at timestamptz, cause text, error_message text,
  error_json jsonb, late_output jsonb, progress jsonb, tokens bigint, cost double precision)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT a.job_id, a.attempt_no, a.attempt_id, a.tenant_id, a.worker_id, a.handler_version, a.status, a.started_at,
    a.ended_at, coalesce(a.cause, r.cause), a.error_message, a.error_json, a.late_output, r.progress, r.tokens, r.cost
  FROM (
    SELECT p.job_id, p.attempt_no, p.attempt_id, p.tenant_id, p.worker_id, p.handler_version, p.status, p.started_at,
      p.ended_at, p.cause, p.error_message, p.error_json, p.late_output
    FROM {schema}.past_attempts p
    UNION ALL
    SELECT j.job_id, j.attempt_count, j.current_attempt_id, j.tenant_id::text, j.worker_id, j.attempt_version,
      (CASE j.state WHEN 'RUNNING' THEN 'RUNNING' WHEN 'SUCCEEDED' THEN 'SUCCEEDED' END)::{schema}.oracle_attempt_status,
      j.attempt_started_at, j.completed_at, NULL, NULL, NULL, NULL
    FROM {schema}.jobs j
  ) a LEFT JOIN {schema}.attempt_reports r ON r.job_id = a.job_id AND r.attempt_no = a.attempt_no
  -- Not in the part that it is about: that could then not be looked up in a join.
  WHERE a.status IS NOT NULL
$$;

CREATE VIEW {schema}.attempts AS SELECT * FROM {schema}.all_attempts();

CREATE TABLE {schema}.results (
  job_id uuid NOT NULL PRIMARY KEY,
  attempt_id uuid NOT NULL,
  -- The attempt's, so that run times can be counted by time.
  started_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  result_schema_version integer NOT NULL DEFAULT 1,
  tenant_id text NOT NULL,
  content_hash text NOT NULL,
  provenance_hash text NOT NULL,
  model_metadata jsonb,
  result_payload jsonb NOT NULL
) WITH (toast_tuple_target = 512);

-- What an attempt wrote with `log`. Its worker numbers the lines, so that a line sent twice is kept once.
CREATE TABLE {schema}.attempt_logs (
  job_id uuid NOT NULL,
  at timestamptz NOT NULL,
  attempt_no integer NOT NULL,
  seq integer NOT NULL CHECK (seq > 0),
  level text NOT NULL CHECK (level IN ('info', 'warn', 'error')),
  tenant_id text NOT NULL,
  message text NOT NULL,
  fields jsonb,
  PRIMARY KEY (job_id, attempt_no, seq)
);

-- By-products of an attempt. Small JSON lies in the row; the bytes of everything else are in the artifact store,
-- durable before the row is there, under a name that begins with the tenant's hash and holds the digest.
CREATE TABLE {schema}.artifacts (
  artifact_id uuid NOT NULL PRIMARY KEY,
  job_id uuid NOT NULL,
  attempt_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  size bigint NOT NULL CHECK (size >= 0),
  attempt_no integer NOT NULL,
  tenant_id text NOT NULL,
  artifact_type text NOT NULL CHECK (artifact_type IN ('json', 'text', 'bytes')),
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  media_type text NOT NULL CHECK (length(media_type) BETWEEN 1 AND 200),
  sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  reference text,
  artifact_payload jsonb,
  CONSTRAINT inline_or_reference CHECK ((artifact_payload IS NULL) <> (reference IS NULL)),
  CONSTRAINT inline_is_json CHECK (artifact_payload IS NULL OR artifact_type = 'json'),
  -- A row can name bytes of its own tenant only, and only those of its digest.
  CONSTRAINT reference_is_own CHECK (reference LIKE
    left(encode(sha256(convert_to(tenant_id, 'UTF8')), 'hex'), 16) || '/%/' || sha256 || '.%')
);

-- One row per job that could start now; claims delete from its head.
-- rank and ready_at are the order: -priority and run_after, or both in one moment where the queue has ageing.
-- pin is type@version where the job asks for one version of its handler; workers that have another walk past it.
CREATE TABLE {schema}.ready_jobs (
  ready_at timestamptz NOT NULL,
  job_id uuid NOT NULL,
  rank integer NOT NULL,
  concurrency_limit integer,
  queue_name text NOT NULL,
  tenant_id text NOT NULL,
  pin text,
  concurrency_key text,
  PRIMARY KEY (queue_name, tenant_id, rank, ready_at, job_id)
);

-- What must happen to a job later: 'run' puts it among the ready ones, 'deadline' ends it.
CREATE TABLE {schema}.timers (
  due_at timestamptz NOT NULL,
  job_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('run', 'deadline')),
  tenant_id text NOT NULL,
  PRIMARY KEY (due_at, job_id, kind)
);

-- One row per claimed batch: where the sweeper looks for leases that may have run out. Only a hint;
-- jobs.lease_expires_at is the truth, and renewals do not touch these rows.
CREATE TABLE {schema}.claims (
  claim_id uuid NOT NULL PRIMARY KEY,
  expires_at timestamptz NOT NULL,
  worker_id text NOT NULL,
  queue_names text[] NOT NULL,
  -- Whose jobs may be among them: a worker that serves one tenant passes by what cannot be its own.
  tenant_ids text[] NOT NULL,
  job_ids uuid[] NOT NULL
);

CREATE TABLE {schema}.queues (
  queue_name text NOT NULL PRIMARY KEY CHECK (length(queue_name) BETWEEN 1 AND 200),
  paused_at timestamptz,
  -- When set, one point of priority is worth this many seconds of waiting, so nothing starves.
  ageing_seconds double precision CHECK (ageing_seconds > 0),
  -- Its jobs are announced through a message broker too.
  announced boolean NOT NULL DEFAULT false
);

-- Jobs to announce through a broker, once what made them wait has committed. Hints: whoever announces a job deletes
-- its row, and polling finds what was never announced.
CREATE TABLE {schema}.outbox (
  publish_at timestamptz NOT NULL,
  job_id uuid NOT NULL,
  PRIMARY KEY (publish_at, job_id)
);

CREATE TABLE {schema}.workers (
  worker_id text NOT NULL PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A worker not seen for this long counts as dead.
  lease_seconds double precision NOT NULL,
  pid integer NOT NULL,
  concurrency integer NOT NULL,
  draining boolean NOT NULL DEFAULT false,
  host text NOT NULL,
  version text NOT NULL,
  -- NULL: it serves all tenants.
  tenant_id text,
  queues text[] NOT NULL,
  job_types text[] NOT NULL
);

-- Who changed a job's fate by hand, and when.
CREATE TABLE {schema}.audit (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant_id text NOT NULL,
  job_id uuid NOT NULL,
  action text NOT NULL,
  login text NOT NULL DEFAULT session_user,
  details jsonb NOT NULL DEFAULT '{}'
);

-- Which tenant a login of the role {role}_tenant has. The login cannot name another: this table is the owner's,
-- and a setting that a session may change decides nothing for such a login.
CREATE TABLE {schema}.tenant_logins (
  login name NOT NULL PRIMARY KEY,
  tenant_id text NOT NULL CHECK (octet_length(tenant_id) BETWEEN 1 AND 800),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
