import { type Database, statement } from "./database.js";
import type { Counted } from "./fleet.js";

/** Counting stops here; it is for a page that is looked at every few seconds. */
const MOST = 10_000;
const MOST_TIMERS = 100_000;
/** How many ready jobs of each queue are asked for their type. */
const SAMPLE = 1_000;

interface Counts {
  held: number;
  dead: number;
  in_doubt: number;
  delayed: number;
  timers: number;
  running: number;
}

/** Of one tenant by its own index entries, or of all. */
const countOf = (name: string, tenant: (column: string) => string) =>
  statement<Counts>(
    name,
    `SELECT
       (SELECT count(*)::integer FROM (
         SELECT FROM {schema}.jobs j WHERE j.hold_reason IS NOT NULL AND ${tenant("j.tenant_id")}
         LIMIT ${MOST + 1}) h) AS held,
       (SELECT count(*)::integer FROM (
         SELECT FROM {schema}.dead_jobs d WHERE d.state = 'FAILED_TERMINAL' AND ${tenant("d.tenant_id")}
         LIMIT ${MOST + 1}) d) AS dead,
       (SELECT count(*)::integer FROM (
         SELECT FROM {schema}.effects e WHERE e.in_doubt_at IS NOT NULL AND ${tenant("e.tenant_id")}
         LIMIT ${MOST + 1}) e) AS in_doubt,
       t.delayed, t.looked AS timers, (SELECT count(*)::integer FROM {schema}.running_jobs()) AS running
     FROM {schema}.count_delayed(${MOST_TIMERS}) t`,
  );

const countAll = countOf("count-attention", () => "true");
const countOwn = countOf("count-own-attention", (column) => `${column} = $1`);

// A worker that was not seen for two leases is dead.
const fleet = statement<{ alive: number; draining: number; concurrency: number }>(
  "count-workers",
  `SELECT count(*)::integer AS alive, (count(*) FILTER (WHERE w.draining))::integer AS draining,
     coalesce(sum(w.concurrency) FILTER (WHERE NOT w.draining), 0)::integer AS concurrency
   FROM {schema}.workers w WHERE w.seen_at > clock_timestamp() - make_interval(secs => 2 * w.lease_seconds)`,
);

// Types of jobs at the heads of the queues that no live worker serves.
const unserved = statement<{ job_type: string; waiting: number }>(
  "unserved-types",
  `WITH served AS MATERIALIZED (
     SELECT DISTINCT unnest(w.job_types) AS job_type FROM {schema}.workers w
     WHERE w.seen_at > clock_timestamp() - make_interval(secs => 2 * w.lease_seconds) AND NOT w.draining
   )
   SELECT j.job_type, count(*)::integer AS waiting
   FROM {schema}.ready_sample(${SAMPLE}) s JOIN {schema}.jobs j ON j.job_id = s
   WHERE j.job_type NOT IN (SELECT job_type FROM served)
   GROUP BY j.job_type ORDER BY 2 DESC LIMIT 20`,
);

export interface Attention {
  held: Counted;
  dead: Counted;
  inDoubt: Counted;
  delayed: Counted;
  running: number;
  workers: { alive: number; draining: number; concurrency: number };
  unserved: { type: string; waiting: Counted }[];
}

/** What waits for a person, and what could do it. */
export async function readAttention(db: Database, tenantId: string | undefined): Promise<Attention> {
  const [count] = await (tenantId === undefined ? db.query(countAll, []) : db.query(countOwn, [tenantId]));
  const [workers] = await db.query(fleet, []);
  const types = await db.query(unserved, []);
  const upTo = (n = 0): Counted => ({ count: Math.min(n, MOST), more: n > MOST });
  return {
    held: upTo(count?.held),
    dead: upTo(count?.dead),
    inDoubt: upTo(count?.in_doubt),
    delayed: { count: count?.delayed ?? 0, more: (count?.timers ?? 0) >= MOST_TIMERS },
    running: count?.running ?? 0,
    workers: workers ?? { alive: 0, draining: 0, concurrency: 0 },
    unserved: types.map(({ job_type: type, waiting }) => ({
      type,
      waiting: { count: waiting, more: waiting >= SAMPLE },
    })),
  };
}
