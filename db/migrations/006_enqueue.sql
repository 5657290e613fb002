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
