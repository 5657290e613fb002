import { IdempotencyConflict, OracleError } from "../core/errors.js";
import { binary, plainArray, written } from "./arrays.js";
import { type Database, type SqlClient, type Statement, statement } from "./database.js";
import { areAlike, insertAlike } from "./enqueue-alike.js";
import type { Enqueued, NewJob, Outcome, SubmitOptions } from "./new-job.js";

// 006_enqueue.sql: inserts the jobs, makes them ready or sets their timers, and wakes workers.
const insertJobs = statement<{ job_id: string }>(
  "enqueue",
  `SELECT job_id FROM {schema}.enqueue_jobs(
     $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) AS job_id`,
);

// The same for strangers who share a statement: where one of them has to wait for somebody's transaction, it gives up
// soon. Arguments are evaluated before the call, and a CASE is not folded away.
const insertStrangers = statement<{ job_id: string }>(
  "enqueue-strangers",
  `SELECT job_id FROM {schema}.enqueue_jobs(
     $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
     CASE WHEN set_config('lock_timeout', '100ms', true) IS NOT NULL THEN $20::boolean END) AS job_id`,
);

const findExisting = statement<{
  position: number;
  job_id: string;
  joined: "key" | "active";
  spec_hash: string;
}>(
  "enqueue-existing",
  `SELECT n.position::integer, found.job_id, found.joined, found.spec_hash
   FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS n(tenant_id, key, active_spec_hash, position)
   CROSS JOIN LATERAL (
     (SELECT j.job_id, 'key' AS joined, j.spec_hash FROM {schema}.jobs j
      WHERE j.tenant_id = n.tenant_id AND j.idempotency_key = n.key AND j.idempotency_key <> j.job_id::text)
     UNION ALL
     (SELECT j.job_id, 'key', j.spec_hash FROM {schema}.jobs j
      WHERE j.job_id = {schema}.key_as_id(n.key) AND j.tenant_id = n.tenant_id AND j.idempotency_key = n.key)
     UNION ALL
     (SELECT j.job_id, 'active', j.spec_hash FROM {schema}.jobs j
      WHERE j.tenant_id = n.tenant_id AND j.active_spec_hash = n.active_spec_hash)
     LIMIT 1
   ) found`,
);

const findSucceededTwin = statement<{ position: number; job_id: string }>(
  "enqueue-twin",
  `SELECT n.position::integer, found.job_id
   FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(tenant_id, spec_hash, position)
   CROSS JOIN LATERAL (
     SELECT j.job_id FROM {schema}.jobs j
     WHERE j.spec_hash = n.spec_hash AND j.tenant_id = n.tenant_id AND j.state = 'SUCCEEDED'
     ORDER BY j.completed_at DESC LIMIT 1
   ) found`,
);

/**
 * Stores the jobs in one statement and says of each, in order, whether it is new.
 * With a client, inside the caller's transaction; without one, all jobs are stored or none.
 */
export async function enqueue(
  db: Database,
  jobs: NewJob[],
  options: SubmitOptions = {},
): Promise<Enqueued[]> {
  const { client } = options;
  if (!jobs.some(mayJoin)) return insertAll(db, jobs, options, insertJobs);
  const all = async (own: SqlClient | undefined) =>
    (await enqueueOrJoin(db, jobs, { ...options, client: own })).map(orThrow);
  // One job that joins stores nothing, so only several need a transaction to stay all or nothing.
  return client || jobs.length === 1 ? all(client) : db.transaction(all);
}

/**
 * Stores jobs of several submitters, each for itself: a conflict is the one job's outcome. Where the server refuses
 * the statement nothing is stored; then each must be tried apart.
 */
export async function enqueueEach(
  db: Database,
  jobs: NewJob[],
  options: Pick<SubmitOptions, "announcing"> = {},
): Promise<Outcome[]> {
  const sql = jobs.length === 1 ? insertJobs : insertStrangers;
  return jobs.some(mayJoin) ? enqueueOrJoin(db, jobs, options, sql) : insertAll(db, jobs, options, sql);
}

/** Where nobody can join, all of them are new. */
async function insertAll(
  db: Database,
  jobs: NewJob[],
  options: SubmitOptions,
  sql: Statement<unknown>,
): Promise<Enqueued[]> {
  const inserted = areAlike(jobs) && (await insertAlike(db, jobs, options));
  if (!inserted) await db.query(sql, toValues(jobs, options), options.client);
  return jobs.map(made);
}

function orThrow(outcome: Outcome): Enqueued {
  if (outcome instanceof OracleError) throw outcome;
  return outcome;
}

function mayJoin(job: NewJob): boolean {
  return job.key !== undefined || job.dedupe !== undefined;
}

async function enqueueOrJoin(
  db: Database,
  jobs: NewJob[],
  options: SubmitOptions,
  sql = insertJobs,
): Promise<Outcome[]> {
  const { client } = options;
  const outcomes = new Map<NewJob, Outcome>();
  await joinSucceededTwins(db, jobs, outcomes, client);
  // A twin can finish between the refused insert and the look-up; then there is room for a new job.
  for (let round = 0; round < 10; round++) {
    const open = jobs.filter((job) => !outcomes.has(job));
    if (open.length === 0) break;
    const refused = await insert(db, open, options, sql);
    for (const job of open) {
      // Without a key the id is the job's own, there from an earlier try at most.
      if (!refused.has(job.jobId) || !mayJoin(job)) outcomes.set(job, made(job));
    }
    await joinExisting(
      db,
      open.filter((job) => !outcomes.has(job)),
      outcomes,
      client,
    );
  }
  const message = "Enqueue kept meeting a twin that was gone a moment later; try again.";
  return jobs.map((job) => outcomes.get(job) ?? new OracleError("INTERNAL", message));
}

function made({ jobId }: NewJob): Enqueued {
  return { jobId, created: true, joined: null };
}

/** Returns the ids of those that somebody's key or an unfinished twin kept out. */
async function insert(
  db: Database,
  jobs: NewJob[],
  options: SubmitOptions,
  sql = insertJobs,
): Promise<Set<string>> {
  // One order for everybody: two bulk inserts of the same keys then wait for each other, never in a circle. Strangers
  // keep the order in which they came, and do not wait long.
  const rows =
    sql === insertJobs
      ? [...jobs].sort(
          (a, b) => compare(a.tenantId, b.tenantId) || compare(a.key ?? a.jobId, b.key ?? b.jobId),
        )
      : jobs;
  const refused = await db.query(sql, toValues(rows, options), options.client);
  return new Set(refused.map((row) => row.job_id));
}

/** One array per column. A column in which nobody gives a value is not sent. */
function toValues(jobs: NewJob[], { client, announcing = false }: SubmitOptions): unknown[] {
  // The caller's client may be another driver's.
  const form = client ? written : binary;
  const column = <T>(pick: (job: NewJob) => T | null | undefined) =>
    jobs.some((job) => pick(job) != null) ? jobs.map(pick) : null;
  const texts = (pick: (job: NewJob) => string | null | undefined) => {
    const given = column(pick);
    return given && form.texts(given);
  };
  return [
    form.ids(jobs.map((job) => job.jobId)),
    texts((job) => job.tenantId),
    texts((job) => job.queue),
    texts((job) => job.type),
    texts((job) => job.key),
    texts((job) => job.specHash),
    texts((job) => (job.dedupe === "active" ? job.specHash : null)),
    plainArray(jobs.map((job) => job.priority)),
    plainArray(jobs.map((job) => job.maxAttempts)),
    column((job) => job.timeoutSeconds),
    column((job) => (job.runAfter instanceof Date ? job.runAfter : null)),
    column((job) => (typeof job.runAfter === "number" ? job.runAfter : null)),
    column((job) => (job.deadline instanceof Date ? job.deadline : null)),
    column((job) => (typeof job.deadline === "number" ? job.deadline : null)),
    texts((job) => job.handlerVersion),
    column((job) => job.replayOf),
    texts((job) => job.concurrencyKey),
    column((job) => job.concurrencyLimit),
    texts((job) => job.inputText),
    announcing,
  ];
}

async function joinExisting(
  db: Database,
  jobs: NewJob[],
  outcomes: Map<NewJob, Outcome>,
  client?: SqlClient,
): Promise<void> {
  if (jobs.length === 0) return;
  const found = await db.query(
    findExisting,
    [
      jobs.map((job) => job.tenantId),
      jobs.map((job) => job.key),
      jobs.map((job) => (job.dedupe === "active" ? job.specHash : null)),
    ],
    client,
  );
  for (const row of found) {
    const job = jobs[row.position - 1] as NewJob;
    outcomes.set(
      job,
      row.job_id === job.jobId // stored by an earlier try
        ? made(job)
        : row.spec_hash === job.specHash
          ? { jobId: row.job_id, created: false, joined: row.joined }
          : new IdempotencyConflict(job.key ?? job.jobId, row.job_id),
    );
  }
}

async function joinSucceededTwins(
  db: Database,
  jobs: NewJob[],
  outcomes: Map<NewJob, Outcome>,
  client?: SqlClient,
): Promise<void> {
  const wanted = jobs.filter((job) => job.dedupe === "result");
  if (wanted.length === 0) return;
  const found = await db.query(
    findSucceededTwin,
    [wanted.map((job) => job.tenantId), wanted.map((job) => job.specHash)],
    client,
  );
  for (const row of found) {
    outcomes.set(wanted[row.position - 1] as NewJob, { jobId: row.job_id, created: false, joined: "result" });
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
