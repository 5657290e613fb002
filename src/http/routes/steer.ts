import { OracleError } from "../../core/errors.js";
import type { Job } from "../../core/job.js";
import { isFinished, type JobState } from "../../core/states.js";
import { cancel, cancelMany, retry, retryMany } from "../../store/control.js";
import type { Database } from "../../store/database.js";
import { type JobPage, list } from "../../store/list.js";
import { approve, reject } from "../../store/plan.js";
import { getJobs } from "../../store/read.js";
import type { Call, Handlers, Services } from "../call.js";
import { fromCursor, toCursor, uuidShape } from "../cursor.js";
import { toFilter } from "../filter.js";
import { jobJson } from "../to-json.js";

/** One call changes so many at most. */
const AT_ONCE = 1000;
/** Counting goes so far, and looks no longer than this for another page. */
const MOST_COUNTED = 10_000;
const SEARCH_MS = 500;

interface Change {
  /** Which jobs it can change. */
  states: readonly JobState[];
  can(job: Job): boolean;
  apply(db: Database, jobIds: string[]): Promise<Job[]>;
}

const retrying: Change = {
  states: ["FAILED_TERMINAL", "CANCELLED"],
  can: (job) => job.state === "FAILED_TERMINAL" || job.state === "CANCELLED",
  apply: retryMany,
};

const cancelling: Change = {
  states: ["PENDING", "FAILED_RETRYABLE", "RUNNING"],
  can: (job) => !isFinished(job.state) && job.cancelRequestedAt === null,
  apply: cancelMany,
};

type Steering = "cancelJob" | "retryJob" | "approveJob" | "rejectJob" | "retryJobs" | "cancelJobs";

export function steerRoutes({ db }: Services): Handlers<Steering> {
  return {
    cancelJob: async ({ params: { id = "" }, acting }) => jobJson(await acting(id, (db) => cancel(db, id))),
    retryJob: async ({ params: { id = "" }, acting }) => jobJson(await acting(id, (db) => retry(db, id))),
    approveJob: async ({ params: { id = "" }, acting }) => jobJson(await acting(id, (db) => approve(db, id))),
    rejectJob: async ({ params: { id = "" }, body, acting }) =>
      jobJson(await acting(id, (db) => reject(db, id, body.why))),
    retryJobs: (call) => changeMany(call, retrying, db),
    cancelJobs: (call) => changeMany(call, cancelling, db),
  };
}

async function changeMany(call: Call<"retryJobs" | "cancelJobs">, change: Change, db: Database) {
  const { body, tenant, within } = call;
  const { ids, dry_run, cursor, state, held } = body;
  if (ids === undefined) checkMeant(state, held, change);
  const start = cursor === undefined ? undefined : fromCursor(cursor, uuidShape)[0];
  const filter = toFilter(body, tenant);
  const look = (after: string | undefined): Promise<JobPage> =>
    within(async (own) =>
      ids === undefined
        ? list(own, { ...filter, after, limit: AT_ONCE, withinMs: SEARCH_MS })
        : { items: await getJobs(own, ids), next: null },
    );
  if (dry_run) return { matched: await count(look, start, change), changed: 0, next: null };
  const { items, next } = await look(start);
  const meant = items.filter(change.can);
  let changed = 0;
  for (const [tenantId, jobs] of byTenant(meant)) {
    changed += (await db.asTenant(tenantId, (own) => change.apply(own, jobs))).length;
  }
  return {
    matched: { count: meant.length, more: next !== null },
    changed,
    next: next === null ? null : toCursor([next]),
  };
}

/** The jobs' ids, by whose they are. */
function byTenant(jobs: Job[]): Map<string, string[]> {
  const tenants = new Map<string, string[]>();
  for (const { tenantId, jobId } of jobs) tenants.set(tenantId, [...(tenants.get(tenantId) ?? []), jobId]);
  return tenants;
}

async function count(
  look: (after: string | undefined) => Promise<JobPage>,
  start: string | undefined,
  { can }: Change,
) {
  let counted = 0;
  for (let after = start; ; ) {
    const { items, next } = await look(after);
    counted += items.filter(can).length;
    if (next === null || counted >= MOST_COUNTED) return { count: counted, more: next !== null };
    after = next;
  }
}

/** A filter that is left empty by mistake must not mean every job there is. */
function checkMeant(state: JobState | undefined, held: boolean | undefined, { states }: Change): void {
  if (state === undefined ? held === true : states.includes(state)) return;
  const message = `state must be one of ${states.join(", ")}; or give ids, or held.`;
  throw new OracleError("INVALID_ARGUMENT", message, { field: "$.state" });
}
