import { type Statement, statement } from "./database.js";
import { type JobRow, jobColumns } from "./job-row.js";

/** One look: some candidates, newest first, of which those that match come back. Never without a row. */
export interface LookRow extends Omit<JobRow, "job_id"> {
  /** Null when nothing matched; then the other columns are null too. */
  job_id: string | null;
  /** The last candidate; null when there were fewer than asked for, so that none is left. */
  reached: string | null;
  /** How many groups were merged; null when there are too many for this source. */
  groups: number | null;
}

// The parameters of every look: $1 below this id, $2 above this one, $3 how many to look at, $4 how many to take,
// $5 state, $6 type, $7 queue, $8 tenant, $9 spec_hash, $10 held, $11 text.
const hit = `(j.job_id > $2::uuid
    AND ($5::text IS NULL OR j.state::text = $5)
    AND ($6::text IS NULL OR j.job_type = $6)
    AND ($7::text IS NULL OR j.queue_name = $7)
    AND ($8::text IS NULL OR j.tenant_id = $8)
    AND ($9::text IS NULL OR j.spec_hash = $9)
    AND ($10::boolean IS NULL OR (j.hold_reason IS NOT NULL) = $10)
    AND ($11::text IS NULL OR strpos(lower(j.idempotency_key), lower($11)) > 0
      OR strpos(lower(j.job_type), lower($11)) > 0
      OR (j.error_json IS NOT NULL
        AND strpos(lower(concat_ws(' ', j.error_json ->> 'code', j.error_json ->> 'message')), lower($11)) > 0)
      OR strpos(j.hold_reason, lower($11)) > 0)) AS hit`;

interface Source {
  /** A table expression that stands in front. */
  first?: string;
  /** job_id and hit of each candidate, newest first. */
  looked: string;
  /** See LookRow. */
  groups?: string;
}

/** Candidates in the order of the table's own key. */
const walk = (condition = "true"): Source => ({
  looked: `SELECT j.job_id, ${hit} FROM {schema}.jobs j
     WHERE j.job_id < $1::uuid AND ${condition} ORDER BY j.job_id DESC LIMIT $3`,
});

/** Candidates that a narrow table, a function or an index names. */
const named = (ids: string, condition = "true"): Source => ({
  looked: `SELECT j.job_id, j.hit FROM (
       SELECT c.job_id FROM ${ids} WHERE c.job_id < $1::uuid AND ${condition} ORDER BY c.job_id DESC LIMIT $3) c
     CROSS JOIN LATERAL (SELECT j.job_id, ${hit} FROM {schema}.jobs j WHERE j.job_id = c.job_id LIMIT 1) j
     ORDER BY j.job_id DESC`,
});

/** How many groups of tenant, type and queue are gone through at most. */
const MOST_GROUPS = 2000;
/** How many waiting jobs are gone through one by one at most. */
const MOST_WAITING = 20_000;

/** Groups are found by skipping through idx_jobs_kind from one to the next. `fixed` holds for all, `behind` follows k. */
const groups = (fixed: string, behind: string) => `groups AS (
       (SELECT j.tenant_id, j.job_type, j.queue_name, 1 AS n FROM {schema}.jobs j
        WHERE ${fixed} ORDER BY j.tenant_id, j.job_type, j.queue_name LIMIT 1)
       UNION ALL
       SELECT next.tenant_id, next.job_type, next.queue_name, k.n + 1 FROM groups k CROSS JOIN LATERAL (
         SELECT j.tenant_id, j.job_type, j.queue_name FROM {schema}.jobs j
         WHERE ${fixed} AND ${behind} ORDER BY j.tenant_id, j.job_type, j.queue_name LIMIT 1) next
       WHERE k.n < ${MOST_GROUPS})`;

const ofTenant = groups("j.tenant_id = $8", "(j.job_type, j.queue_name) > (k.job_type, k.queue_name)");
const ofType = groups("j.tenant_id = $8 AND j.job_type = $6", "j.queue_name > k.queue_name");
const ofEvery = groups(
  "true",
  "(j.tenant_id, j.job_type, j.queue_name) > (k.tenant_id, k.job_type, k.queue_name)",
);
/** Of every tenant, which are found by skipping too, the groups of one type. */
const ofEveryType = `tenants AS (
       (SELECT j.tenant_id, 1 AS n FROM {schema}.jobs j ORDER BY j.tenant_id LIMIT 1)
       UNION ALL
       SELECT next.tenant_id, k.n + 1 FROM tenants k CROSS JOIN LATERAL (
         SELECT j.tenant_id FROM {schema}.jobs j
         WHERE j.tenant_id > k.tenant_id ORDER BY j.tenant_id LIMIT 1) next
       WHERE k.n < ${MOST_GROUPS}),
     groups AS (
       SELECT t.tenant_id, q.job_type, q.queue_name FROM tenants t CROSS JOIN LATERAL (
         WITH RECURSIVE ${groups("j.tenant_id = t.tenant_id AND j.job_type = $6", "j.queue_name > k.queue_name")}
         SELECT * FROM groups) q)`;
const countGroups = `(SELECT nullif(count(*), ${MOST_GROUPS})::integer FROM groups)`;

/** The newest jobs of each group. */
const newest = `groups k CROSS JOIN LATERAL (
         SELECT j.job_id FROM {schema}.jobs j
         WHERE j.tenant_id = k.tenant_id AND j.job_type = k.job_type AND j.queue_name = k.queue_name
           AND j.job_id < $1::uuid
         ORDER BY j.job_id DESC LIMIT $3) c`;

/** Each group is read from its newest job on, and the newest of all are the candidates. */
const merged = (first: string): Source => ({
  first,
  groups: countGroups,
  ...named(newest, "($6::text IS NULL OR k.job_type = $6) AND ($7::text IS NULL OR k.queue_name = $7)"),
});

const waiting = `waiting AS MATERIALIZED (SELECT {schema}.waiting_jobs(${MOST_WAITING}) AS ids)`;

/** Jobs whose type has the text in it, whose key begins with it, and all that may have an error. */
const searched = (first: string, dead: string): Source => ({
  first: `${first}, ${waiting}`,
  groups: `(SELECT CASE WHEN w.ids IS NOT NULL THEN ${countGroups} END FROM waiting w)`,
  ...named(`(
       SELECT c.job_id FROM ${newest} WHERE strpos(lower(k.job_type), lower($11)) > 0
       UNION
       SELECT c.job_id FROM (SELECT DISTINCT k.tenant_id FROM groups k) t CROSS JOIN LATERAL (
         SELECT j.job_id FROM {schema}.jobs j
         WHERE j.tenant_id = t.tenant_id AND j.idempotency_key <> j.job_id::text
           AND j.idempotency_key >= $11 AND j.idempotency_key < $11 || chr(1114111)
         LIMIT ${MOST_WAITING}) c
       UNION
       SELECT c.job_id FROM (VALUES ('FAILED_TERMINAL'), ('CANCELLED')) ended(state) CROSS JOIN LATERAL (
         SELECT d.job_id FROM {schema}.dead_jobs d
         WHERE ${dead} AND d.state = ended.state AND d.job_id < $1::uuid ORDER BY d.job_id DESC LIMIT $3) c
       UNION
       SELECT unnest(w.ids) FROM waiting w) c`),
});

/** Where candidates come from: whichever is the fewest for a filter, so that what is rare is found at once. */
const sources = {
  every: walk(),
  held: walk("j.hold_reason IS NOT NULL"),
  running: named("(SELECT r AS job_id FROM {schema}.running_jobs() r) c"),
  waiting: {
    first: waiting,
    groups: "(SELECT CASE WHEN w.ids IS NOT NULL THEN 0 END FROM waiting w)",
    ...named("(SELECT unnest(w.ids) AS job_id FROM waiting w) c"),
  },
  succeeded: named("{schema}.results c"),
  dead: named("{schema}.dead_jobs c", "c.state = $5"),
  deadOfTenant: named("{schema}.dead_jobs c", "c.state = $5 AND c.tenant_id = $8"),
  twins: named("{schema}.jobs c", "c.spec_hash = $9"),
  ofTenant: merged(ofTenant),
  ofType: merged(ofType),
  ofEvery: merged(ofEvery),
  ofEveryType: {
    ...merged(ofEveryType),
    groups: `(SELECT nullif(count(*), ${MOST_GROUPS})::integer FROM tenants)`,
  },
  textOfTenant: searched(ofTenant, "d.tenant_id = $8"),
  textOfEvery: searched(ofEvery, "true"),
} as const satisfies Record<string, Source>;

export type SourceName = keyof typeof sources;

function look(name: string, { first, looked, groups = "0" }: Source): Statement<LookRow> {
  return statement<LookRow>(
    `look-${name}`,
    `WITH RECURSIVE ${first === undefined ? "" : `${first}, `}looked AS MATERIALIZED (
     ${looked}),
     hits AS (SELECT l.job_id FROM looked l WHERE l.hit LIMIT $4)
     SELECT (SELECT l.job_id FROM looked l OFFSET $3 - 1 LIMIT 1) AS reached, ${groups} AS groups,
       ${jobColumns}
     FROM (VALUES (1)) one LEFT JOIN LATERAL (
       SELECT j.* FROM hits h CROSS JOIN LATERAL (
         SELECT * FROM {schema}.jobs j WHERE j.job_id = h.job_id LIMIT 1) j) j ON true
     ORDER BY j.job_id DESC`,
  );
}

export const looks = Object.fromEntries(
  Object.entries(sources).map(([name, source]) => [name, look(name, source)]),
) as Record<SourceName, Statement<LookRow>>;
