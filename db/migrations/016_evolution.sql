-- Evolution: what jobs of type evolve_commit leave behind besides their result. Rows are written by persist_evolution
-- only, in the transaction that stores the result: a card is there exactly when its job has succeeded.
-- docs/decisions/0016-evolution-is-a-use-of-jobs.md

-- What a succeeded job is for its experiment, and how far whoever chooses parents has taken notice of it.
CREATE TABLE {schema}.evolution_jobs (
  job_id uuid NOT NULL PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ingested_at timestamptz,
  ingestion_attempts integer NOT NULL DEFAULT 0,
  tenant_id text NOT NULL,
  repository_id text NOT NULL,
  island_id text,
  experiment_id text,
  base_commit_hash text NOT NULL,
  result_commit_hash text NOT NULL,
  plan_summary text NOT NULL,
  ingestion_status text NOT NULL DEFAULT 'PENDING' CHECK (ingestion_status IN ('PENDING', 'INGESTED', 'FAILED')),
  last_ingestion_error text,
  -- Who made it: worker, host, version of the application.
  worker jsonb NOT NULL,
  CONSTRAINT ingested_has_its_time CHECK ((ingestion_status = 'INGESTED') = (ingested_at IS NOT NULL)),
  CONSTRAINT failed_ingestion_has_its_error CHECK ((ingestion_status = 'FAILED') = (last_ingestion_error IS NOT NULL))
);

CREATE TABLE {schema}.commit_cards (
  job_id uuid NOT NULL UNIQUE REFERENCES {schema}.evolution_jobs (job_id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant_id text NOT NULL,
  repository_id text NOT NULL,
  commit_hash text NOT NULL CHECK (commit_hash ~ '^([0-9a-f]{40}|[0-9a-f]{64})$'),
  parent_commit_hash text NOT NULL,
  island_id text,
  experiment_id text,
  subject text NOT NULL CHECK (length(subject) BETWEEN 1 AND 72),
  change_summary text NOT NULL,
  evaluation_summary text,
  key_files jsonb NOT NULL,
  -- The files that changed most: [{path, added, deleted}].
  highlights jsonb NOT NULL,
  PRIMARY KEY (tenant_id, repository_id, commit_hash)
);

CREATE TABLE {schema}.metrics (
  value double precision NOT NULL,
  higher_is_better boolean NOT NULL,
  tenant_id text NOT NULL,
  repository_id text NOT NULL,
  commit_hash text NOT NULL,
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  unit text,
  details jsonb,
  PRIMARY KEY (tenant_id, repository_id, commit_hash, name),
  FOREIGN KEY (tenant_id, repository_id, commit_hash)
    REFERENCES {schema}.commit_cards (tenant_id, repository_id, commit_hash) ON DELETE CASCADE
);

-- Which of the job's artifacts hold its prompt, its answers and its logs.
CREATE TABLE {schema}.job_artifacts (
  job_id uuid NOT NULL REFERENCES {schema}.evolution_jobs (job_id) ON DELETE CASCADE,
  artifact_id uuid NOT NULL,
  tenant_id text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('prompt', 'plan', 'raw_output', 'execution_log', 'evaluation_log')),
  PRIMARY KEY (job_id, kind)
);

CREATE TRIGGER commit_cards_immutable AFTER UPDATE ON {schema}.commit_cards
FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('a commit card never changes');

CREATE TRIGGER metrics_immutable AFTER UPDATE ON {schema}.metrics
FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('a metric of a commit never changes');

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['evolution_jobs', 'commit_cards', 'metrics', 'job_artifacts'] LOOP
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY all_rows ON {schema}.%I TO {role}_owner, {role}_worker USING (true) WITH CHECK (true)', name);
    EXECUTE format('CREATE POLICY own_rows ON {schema}.%I FOR SELECT TO {role}_server, {role}_tenant '
      'USING (tenant_id = (SELECT {schema}.current_tenant()))', name);
    EXECUTE format('CREATE POLICY every_row ON {schema}.%I FOR SELECT TO {role}_server '
      'USING ((SELECT {schema}.sees_every_tenant() AND {schema}.current_tenant() IS NULL))', name);
    EXECUTE format('GRANT SELECT ON {schema}.%I TO {role}_worker, {role}_server, {role}_tenant', name);
  END LOOP;
END
$$;

-- Taking notice of a card changes nothing of it.
GRANT UPDATE (ingestion_status, ingestion_attempts, ingested_at, last_ingestion_error) ON {schema}.evolution_jobs
  TO {role}_worker;

-- Stores what an evolve_commit job has achieved. Runs in the transaction that settles the job, before it does; false
-- when the attempt does not hold the job. What the job is about is taken from the job itself.
-- p_record: {commit_hash, plan_summary, subject, change_summary, evaluation_summary, key_files, highlights,
-- metrics: [{name, value, unit, higher_is_better, details}], artifacts: [{kind, artifact_id}], worker}
-- Locks: the job.
CREATE FUNCTION {schema}.persist_evolution(p_job_id uuid, p_attempt_id uuid, p_record jsonb) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  job {schema}.jobs;
  repository text;
BEGIN
  SELECT j.* INTO job FROM {schema}.jobs j
  WHERE j.job_id = p_job_id AND j.current_attempt_id = p_attempt_id AND j.state = 'RUNNING'
    AND j.job_type = 'evolve_commit'
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  repository := job.input_payload ->> 'repository_id';
  INSERT INTO {schema}.evolution_jobs (
    job_id, tenant_id, repository_id, island_id, experiment_id, base_commit_hash, result_commit_hash, plan_summary, worker)
  VALUES (
    job.job_id, job.tenant_id, repository, job.input_payload ->> 'island_id', job.input_payload ->> 'experiment_id',
    job.input_payload ->> 'base_commit_hash', p_record ->> 'commit_hash', p_record ->> 'plan_summary',
    p_record -> 'worker' || jsonb_build_object('worker_id', job.worker_id, 'attempt_no', job.attempt_count));
  INSERT INTO {schema}.commit_cards (
    job_id, tenant_id, repository_id, commit_hash, parent_commit_hash, island_id, experiment_id, subject, change_summary,
    evaluation_summary, key_files, highlights)
  VALUES (
    job.job_id, job.tenant_id, repository, p_record ->> 'commit_hash', job.input_payload ->> 'base_commit_hash',
    job.input_payload ->> 'island_id', job.input_payload ->> 'experiment_id', p_record ->> 'subject',
    p_record ->> 'change_summary', p_record ->> 'evaluation_summary', p_record -> 'key_files', p_record -> 'highlights');
  INSERT INTO {schema}.metrics (tenant_id, repository_id, commit_hash, name, value, unit, higher_is_better, details)
  SELECT job.tenant_id, repository, p_record ->> 'commit_hash', m.name, m.value, m.unit, m.higher_is_better,
    nullif(m.details, 'null')
  FROM jsonb_to_recordset(p_record -> 'metrics')
    AS m(name text, value double precision, unit text, higher_is_better boolean, details jsonb);
  -- Only what the job's own attempts have kept.
  INSERT INTO {schema}.job_artifacts (job_id, artifact_id, tenant_id, kind)
  SELECT job.job_id, a.artifact_id, job.tenant_id, r.kind
  FROM jsonb_to_recordset(p_record -> 'artifacts') AS r(kind text, artifact_id uuid)
  JOIN {schema}.artifacts a ON a.artifact_id = r.artifact_id AND a.job_id = job.job_id
  ON CONFLICT (job_id, kind) DO UPDATE SET artifact_id = excluded.artifact_id;
  RETURN true;
END
$$;

REVOKE ALL ON FUNCTION {schema}.persist_evolution FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.persist_evolution TO {role}_worker;
