-- Any language that speaks to PostgreSQL can submit a job: one function call, inside the caller's transaction.
-- Run: psql "$DATABASE_URL" -f examples/sql-enqueue.sql   (twice: the second time created is false)
SELECT job_id, created
FROM oracle.enqueue(
  'summarize_text',
  '{"text": "Leases belong to attempts. Results belong to jobs. Everything else may crash.", "max_bullets": 1}',
  key => 'sql-example',
  queue => 'example-sql',
  priority => 10
);
