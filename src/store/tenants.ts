import { OracleError } from "../core/errors.js";
import { checkTenantLimits, type Rate, type Tenant, type TenantLimits } from "../core/tenant.js";
import { checkTenantId, type Database, type SqlClient, statement } from "./database.js";

interface LimitsRow {
  weight: number | null;
  max_running: number | null;
  max_waiting: number | null;
  start_limit: number | null;
  start_seconds: number | null;
  enqueue_limit: number | null;
  enqueue_seconds: number | null;
  retention_seconds: number | null;
}

interface TenantRow extends LimitsRow {
  tenant_id: string;
  created_at: Date | null;
  waiting: string;
  running: string;
  jobs: string;
  succeeded: string;
  attempts: string;
  run_seconds: number | null;
  tokens: string | null;
  cost: number | null;
  bytes: string;
}

// Those of the caller's tenants with settings, with jobs that wait or run, or with anything in the last $1 seconds.
// Waiting and running are counted from the narrow tables, what was used from the records by their times.
const listTenants = statement<TenantRow>(
  "list-tenants",
  `WITH since AS MATERIALIZED (
     SELECT clock_timestamp() - make_interval(secs => $1) AS moment
   ), waiting AS (
     SELECT tenant_id, count(*) AS n FROM (
       SELECT tenant_id FROM {schema}.ready_jobs UNION ALL SELECT tenant_id FROM {schema}.parked_jobs
       UNION ALL SELECT tenant_id FROM {schema}.timers WHERE kind = 'run') w GROUP BY tenant_id
   ), running AS (
     SELECT j.tenant_id, count(*) AS n FROM {schema}.running_jobs() r JOIN {schema}.jobs j ON j.job_id = r
     GROUP BY j.tenant_id
   ), submitted AS (
     SELECT tenant_id, count(*) AS jobs, sum(pg_column_size(input_payload)) AS bytes
     FROM {schema}.jobs WHERE created_at >= (SELECT moment FROM since) GROUP BY tenant_id
   ), tried AS (
     SELECT tenant_id, count(*) AS attempts,
       sum(extract(epoch FROM coalesce(ended_at, clock_timestamp()) - started_at)) AS run_seconds
     FROM (
       SELECT tenant_id, started_at, ended_at FROM {schema}.past_attempts
       UNION ALL
       SELECT tenant_id, started_at, created_at FROM {schema}.results
       WHERE created_at >= (SELECT moment FROM since)
       UNION ALL
       SELECT j.tenant_id, j.attempt_started_at, NULL
       FROM {schema}.running_jobs() r JOIN {schema}.jobs j ON j.job_id = r
     ) a WHERE started_at >= (SELECT moment FROM since) GROUP BY tenant_id
   ), used AS (
     SELECT tenant_id, sum(tokens) AS tokens, sum(cost) AS cost FROM {schema}.attempt_reports
     WHERE started_at >= (SELECT moment FROM since) GROUP BY tenant_id
   ), done AS (
     SELECT tenant_id, count(*) AS results, sum(pg_column_size(result_payload)) AS bytes
     FROM {schema}.results WHERE created_at >= (SELECT moment FROM since) GROUP BY tenant_id
   ), kept AS (
     SELECT tenant_id, sum(size) AS bytes FROM {schema}.artifacts
     WHERE created_at >= (SELECT moment FROM since) GROUP BY tenant_id
   )
   SELECT tenant_id, t.created_at, t.weight, t.max_running, t.max_waiting, t.start_limit, t.start_seconds,
     t.enqueue_limit, t.enqueue_seconds, t.retention_seconds,
     coalesce(waiting.n, 0) AS waiting, coalesce(running.n, 0) AS running, coalesce(submitted.jobs, 0) AS jobs,
     coalesce(done.results, 0) AS succeeded, coalesce(tried.attempts, 0) AS attempts,
     tried.run_seconds::float8, used.tokens, used.cost,
     coalesce(submitted.bytes, 0) + coalesce(done.bytes, 0) + coalesce(kept.bytes, 0) AS bytes
   FROM {schema}.tenants t FULL JOIN waiting USING (tenant_id) FULL JOIN running USING (tenant_id)
     FULL JOIN submitted USING (tenant_id) FULL JOIN tried USING (tenant_id) FULL JOIN used USING (tenant_id)
     FULL JOIN done USING (tenant_id) FULL JOIN kept USING (tenant_id)
   ORDER BY tenant_id`,
);

const addTenant = statement<{ tenant_id: string }>(
  "add-tenant",
  `INSERT INTO {schema}.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING tenant_id`,
);

// Each setting comes with whether it is given: null is a value.
const changeTenant = statement<LimitsRow & { told: string }>(
  "set-tenant",
  `UPDATE {schema}.tenants t SET
     weight = coalesce($2, t.weight),
     max_running = CASE WHEN $3 THEN $4 ELSE t.max_running END,
     max_waiting = CASE WHEN $5 THEN $6 ELSE t.max_waiting END,
     start_limit = CASE WHEN $7 THEN $8 ELSE t.start_limit END,
     start_seconds = CASE WHEN $7 THEN $9 ELSE t.start_seconds END,
     enqueue_limit = CASE WHEN $10 THEN $11 ELSE t.enqueue_limit END,
     enqueue_seconds = CASE WHEN $10 THEN $12 ELSE t.enqueue_seconds END,
     retention_seconds = CASE WHEN $13 THEN $14 ELSE t.retention_seconds END
   WHERE t.tenant_id = $1
   -- A limit that has become wider lets jobs start.
   RETURNING t.*, pg_notify('{schema}_wake', 'sweep')::text AS told`,
);

const countRunning = statement<never>("count-running", `SELECT {schema}.count_running($1)`);

/** A hundred years. */
const LONGEST_SINCE = 3_155_760_000;

/** Tenants with their limits, what waits and runs now, and what they have used in the last seconds. */
export async function tenants(db: Database, sinceSeconds = 86_400): Promise<Tenant[]> {
  if (!(sinceSeconds > 0 && sinceSeconds <= LONGEST_SINCE)) {
    const message = `sinceSeconds is ${sinceSeconds}; it must be above 0 and at most ${LONGEST_SINCE}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "sinceSeconds" });
  }
  return (await db.query(listTenants, [sinceSeconds])).map((row) => ({
    tenantId: row.tenant_id,
    createdAt: row.created_at,
    ...toLimits(row),
    waiting: Number(row.waiting),
    running: Number(row.running),
    jobs: Number(row.jobs),
    succeeded: Number(row.succeeded),
    attempts: Number(row.attempts),
    runSeconds: row.run_seconds ?? 0,
    tokens: Number(row.tokens ?? 0),
    cost: row.cost ?? 0,
    bytes: Number(row.bytes),
  }));
}

/** Changes what is given and leaves the rest. `mustBeNew` refuses a tenant that has settings already. */
export async function setTenant(
  db: Database,
  tenantId: string,
  limits: Partial<TenantLimits>,
  mustBeNew = false,
): Promise<TenantLimits> {
  checkTenantId(tenantId);
  checkTenantLimits(limits);
  return db.transaction(async (client) => {
    const [added] = await db.query(addTenant, [tenantId], client);
    if (!added && mustBeNew) {
      const message = `Tenant ${JSON.stringify(tenantId)} is there already; change it with set.`;
      throw new OracleError("TENANT_EXISTS", message, { field: "tenant" });
    }
    return change(db, tenantId, limits, client);
  });
}

async function change(
  db: Database,
  tenantId: string,
  limits: Partial<TenantLimits>,
  client: SqlClient,
): Promise<TenantLimits> {
  const given = <T>(value: T | null | undefined) => [value !== undefined, value ?? null];
  const rate = (value: Rate | null | undefined) => [
    value !== undefined,
    value?.count ?? null,
    value?.seconds ?? null,
  ];
  const [row] = await db.query(
    changeTenant,
    [
      tenantId,
      limits.weight ?? null,
      ...given(limits.maxRunning),
      ...given(limits.maxWaiting),
      ...rate(limits.startRate),
      ...rate(limits.enqueueRate),
      ...given(limits.retentionSeconds),
    ],
    client,
  );
  if (typeof limits.maxRunning === "number") await db.query(countRunning, [tenantId], client);
  return toLimits(row as LimitsRow);
}

function toLimits(row: LimitsRow): TenantLimits {
  return {
    weight: row.weight ?? 1,
    maxRunning: row.max_running,
    maxWaiting: row.max_waiting,
    startRate: toRate(row.start_limit, row.start_seconds),
    enqueueRate: toRate(row.enqueue_limit, row.enqueue_seconds),
    retentionSeconds: row.retention_seconds,
  };
}

function toRate(count: number | null, seconds: number | null): Rate | null {
  return count === null || seconds === null ? null : { count, seconds };
}
