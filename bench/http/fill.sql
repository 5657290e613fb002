-- Jobs $1 to $2 of a history of $3 that ends now: 50 tenants with 40 types in 10 queues, and one job in 100,000 of a type,
-- a queue and a tenant that are rare. Of a thousand jobs 20 failed, 5 were cancelled, and of the latest 1 waits for its
-- turn, 1 for another attempt. Triggers are off, so that ten million take minutes.
WITH made AS MATERIALIZED (
  SELECT n,
    moment,
    overlay(overlay(encode(substring(int8send((extract(epoch FROM moment) * 1000)::bigint) FROM 3), 'hex')
      || md5(n::text) PLACING '7' FROM 13) PLACING '8' FROM 17)::text AS hex,
    CASE WHEN n % 100000 = 77 THEN 'rare' ELSE 'tenant-' || n / 7 % 50 END AS tenant_id,
    CASE WHEN n % 100000 = 78 THEN 'rare' ELSE 'queue-' || n / 3 % 10 END AS queue_name,
    CASE WHEN n % 100000 = 79 THEN 'rare' ELSE 'type-' || n / 3 % 40 END AS job_type,
    CASE
      WHEN n % 1000 < 20 THEN 'FAILED_TERMINAL'
      WHEN n % 1000 < 25 THEN 'CANCELLED'
      WHEN n % 1000 = 25 AND n > $3 - 5000000 THEN 'PENDING'
      WHEN n % 1000 = 26 AND n > $3 - 5000000 THEN 'FAILED_RETRYABLE'
      ELSE 'SUCCEEDED'
    END AS state
  FROM generate_series($1::bigint, $2::bigint) n
  CROSS JOIN LATERAL (SELECT now() - ($3 - n) * interval '30 ms' AS moment) m
), ids AS MATERIALIZED (
  SELECT *, substr(hex, 1, 32)::uuid AS job_id FROM made
), jobs AS (
  INSERT INTO oracle.jobs (job_id, created_at, updated_at, run_after, started_at, completed_at, state, attempt_count,
    tenant_id, queue_name, job_type, idempotency_key, spec_hash, error_json, input_payload)
  SELECT job_id, moment, moment, moment, moment,
    CASE WHEN state IN ('SUCCEEDED', 'FAILED_TERMINAL', 'CANCELLED') THEN moment + interval '1 s' END,
    state::oracle.oracle_job_state, 1, tenant_id, queue_name, job_type,
    CASE WHEN n % 2 = 0 THEN 'order-' || n ELSE job_id::text END, encode(sha256(n::text::bytea), 'hex'),
    CASE WHEN state LIKE 'FAILED%' THEN jsonb_build_object('code', 'HANDLER_ERROR', 'message',
      'model answered ' || n % 7 || ' with ' || md5(n::text)) END,
    jsonb_build_object('n', n, 'text', repeat(md5(n::text), 4))
  FROM ids
), results AS (
  INSERT INTO oracle.results (job_id, attempt_id, created_at, tenant_id, content_hash, provenance_hash, result_payload)
  SELECT job_id, job_id, moment, tenant_id, md5(n::text), md5(n::text), jsonb_build_object('n', n)
  FROM ids WHERE state = 'SUCCEEDED'
), dead AS (
  INSERT INTO oracle.dead_jobs (job_id, tenant_id, state)
  SELECT job_id, tenant_id, state FROM ids WHERE state IN ('FAILED_TERMINAL', 'CANCELLED')
), ready AS (
  INSERT INTO oracle.ready_jobs (ready_at, job_id, rank, queue_name, tenant_id)
  SELECT moment, job_id, 0, queue_name, tenant_id FROM ids WHERE state = 'PENDING'
)
INSERT INTO oracle.timers (due_at, job_id, kind, tenant_id)
SELECT moment + interval '1 day', job_id, 'run', tenant_id FROM ids WHERE state = 'FAILED_RETRYABLE'
