import { OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import { type JobState, parseJobState } from "../core/states.js";
import { type Database, statement } from "./database.js";
import { type JobRow, toJob } from "./job-row.js";
import { type LookRow, looks, type SourceName } from "./job-sources.js";
import { checkJobId, getJobs } from "./read.js";

export interface JobFilter {
  state?: JobState | undefined;
  type?: string | undefined;
  queue?: string | undefined;
  tenantId?: string | undefined;
  specHash?: string | undefined;
  /** Only jobs that wait for a person, or only the others. */
  held?: boolean | undefined;
  /** A job's id or key; any other text is looked for in types, keys and the last errors. */
  text?: string | undefined;
  /** By the time that is in a job's id. */
  createdAfter?: Date | undefined;
  createdBefore?: Date | undefined;
}

export interface Paging {
  /** The `next` of the page before. */
  after?: string | undefined;
  /** Default 50. */
  limit?: number | undefined;
  /** How long to look for matches before a short page is given. Default: until the page is full. */
  withinMs?: number | undefined;
}

/** Newest first. `next` is null at the end; where the time ran out, the page is short although it is not. */
export interface JobPage {
  items: Job[];
  next: string | null;
}

const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const FIRST_ID = "00000000-0000-0000-0000-000000000000";
/** A first look at as few as fill the page; where few of them match, ever wider ones. */
const WIDER = 8;
const WIDEST_LOOK = 20_000;
/** The first look where there is no better way than among all. */
const FAR_LOOK = 5_000;
/** Where a look gathers its candidates anew, there should be few looks, and each must end in time. */
const GATHERED_LOOK = 10_000;
const gathered = new Set<SourceName>(["running", "waiting", "textOfTenant", "textOfEvery"]);
/** All groups are read as far as a look is wide, so merging more than these is worth it for a first look only. */
const FEW_GROUPS = 4;

export async function list(db: Database, given: JobFilter & Paging): Promise<JobPage> {
  const limit = checkLimit(given.limit ?? 50);
  const filter = given.state === undefined ? given : { ...given, state: parseJobState(given.state) };
  if (filter.text !== undefined) {
    const exact = await findExact(db, filter.text, filter.tenantId);
    if (exact.length > 0) return { items: exact, next: null };
  }
  const patience = filter.withinMs ?? Number.POSITIVE_INFINITY;
  let endsAt = performance.now() + patience;
  const ways = waysTo(filter);
  let source = ways.shift() ?? "every";
  let below = startOf(filter);
  let look = limit + 1;
  const items: Job[] = [];
  for (;;) {
    const found = await lookOnce(db, source, filter, { below, look, take: limit + 1 - items.length });
    if (found.groups === null) {
      // Learning that took a while, and the next page will learn it anew: so each one gets far.
      source = ways.shift() ?? "every";
      look = FAR_LOOK;
      endsAt = performance.now() + patience;
      continue;
    }
    items.push(...found.items);
    if (items.length > limit) return { items: items.slice(0, limit), next: items[limit - 1]?.jobId ?? null };
    if (found.reached === null) return { items, next: null };
    if (performance.now() >= endsAt) return { items, next: found.reached };
    below = found.reached;
    look = gathered.has(source) ? GATHERED_LOOK : Math.min(look * WIDER, WIDEST_LOOK);
    if (source.startsWith("of") && found.groups > FEW_GROUPS) source = ways.pop() ?? source;
  }
}

/**
 * Where to look, best first. What is rare is found where only it is, the rest among the groups of its tenant;
 * where those are too many, among all jobs.
 */
function waysTo({ state, type, queue, tenantId, specHash, held, text }: JobFilter): SourceName[] {
  if (specHash !== undefined) return ["twins"];
  if (held) return ["held"];
  if (state === "RUNNING") return ["running"];
  if (state === "FAILED_TERMINAL" || state === "CANCELLED")
    return [tenantId === undefined ? "dead" : "deadOfTenant"];
  if (text !== undefined) return [tenantId === undefined ? "textOfEvery" : "textOfTenant", "every"];
  const all: SourceName = state === "SUCCEEDED" ? "succeeded" : "every";
  const grouped: SourceName[] =
    tenantId !== undefined
      ? [type === undefined ? "ofTenant" : "ofType"]
      : type === undefined && queue === undefined
        ? []
        : [type === undefined ? "ofEvery" : "ofEveryType"];
  // Where very many wait, the newest of them are soon met among the others.
  return [
    ...(state === "PENDING" || state === "FAILED_RETRYABLE" ? ["waiting" as const] : []),
    ...grouped,
    all,
  ];
}

interface Look {
  below: string;
  look: number;
  take: number;
}

async function lookOnce(db: Database, source: SourceName, filter: JobFilter, { below, look, take }: Look) {
  const oldest = filter.createdAfter ? idAt(filter.createdAfter) : FIRST_ID;
  const rows = await db.query(looks[source], [
    below,
    oldest,
    look,
    take,
    filter.state,
    filter.type,
    filter.queue,
    filter.tenantId,
    filter.specHash,
    filter.held,
    filter.text,
  ]);
  const items = rows.filter((row): row is JobRow & typeof row => row.job_id !== null).map(toJob);
  const { reached, groups } = rows[0] as LookRow;
  // What is older than asked for need not be looked at.
  return { items, groups, reached: reached !== null && reached > oldest ? reached : null };
}

// A job without a key of its own has its id for one. Tenants are found by skipping through idx_jobs_kind.
const byKey = statement<{ job_id: string }>(
  "find-by-key",
  `WITH RECURSIVE tenants AS (
     (SELECT coalesce($2::text, (SELECT j.tenant_id FROM {schema}.jobs j ORDER BY j.tenant_id LIMIT 1)) AS tenant_id)
     UNION ALL
     SELECT (SELECT j.tenant_id FROM {schema}.jobs j WHERE j.tenant_id > t.tenant_id ORDER BY j.tenant_id LIMIT 1)
     FROM tenants t WHERE t.tenant_id IS NOT NULL AND $2 IS NULL
   )
   SELECT found.job_id FROM (SELECT tenant_id FROM tenants LIMIT 500) t CROSS JOIN LATERAL (
     SELECT j.job_id FROM {schema}.jobs j
     WHERE j.tenant_id = t.tenant_id AND j.idempotency_key = $1 AND j.idempotency_key <> j.job_id::text) found
   UNION
   SELECT j.job_id FROM {schema}.jobs j WHERE j.job_id = {schema}.key_as_id($1)`,
);

/** The jobs whose id or key the text is, whatever else was asked for. */
async function findExact(db: Database, text: string, tenantId: string | undefined): Promise<Job[]> {
  const ids = (await db.query(byKey, [text, tenantId])).map((row) => row.job_id);
  const jobs = ids.length === 0 ? [] : await getJobs(db, ids);
  return jobs
    .filter((job) => tenantId === undefined || job.tenantId === tenantId)
    .sort((a, b) => (a.jobId < b.jobId ? 1 : -1));
}

function startOf({ after, createdBefore }: JobFilter & Paging): string {
  const ends = [
    ...(after === undefined ? [] : [checkJobId(after, "after")]),
    ...(createdBefore === undefined ? [] : [idAt(createdBefore)]),
  ];
  return ends.sort()[0] ?? LAST_ID;
}

/** The lowest id that a job made at that moment can have. */
function idAt(moment: Date): string {
  const hex = Math.max(0, moment.getTime()).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit;
  const message = `limit is ${limit}; it must be a whole number from 1 to 1000.`;
  throw new OracleError("INVALID_ARGUMENT", message, { field: "limit" });
}
