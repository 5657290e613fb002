import { OracleError } from "../../core/errors.js";
import { enqueue } from "../../store/enqueue.js";
import { checkFork } from "../../store/fork.js";
import { list } from "../../store/list.js";
import type { Enqueued, NewJob } from "../../store/new-job.js";
import { getAttempts, requireJob } from "../../store/read.js";
import { takeOverSteps } from "../../store/steps.js";
import { likeness } from "../../submit.js";
import type { Handlers, Services } from "../call.js";
import { fromCursor, toCursor, uuidShape } from "../cursor.js";
import { toFilter } from "../filter.js";
import { idempotencyKey, toOptions } from "../submission.js";
import { TenantSubmissions } from "../tenant-submissions.js";
import { jobJson, jobWithInputJson } from "../to-json.js";
import type { EnqueuedJson } from "../types.js";

/** How long a list is searched before a short page is given. */
const SEARCH_MS = 60;

export function jobRoutes(services: Services): Handlers<"enqueueJob" | "listJobs" | "getJob" | "replayJob"> {
  const { oracle, db } = services;
  const submissions = new TenantSubmissions(db);
  /** A replay may take over steps, in the same transaction. */
  const replay = (row: NewJob, fromStep: string | undefined): Promise<Enqueued> =>
    db.asTenant(row.tenantId, async (own) => {
      if (fromStep !== undefined) await checkFork(own, row.replayOf ?? "", fromStep);
      const [stored] = await enqueue(own, [row]);
      if (fromStep !== undefined) await takeOverSteps(own, (stored as Enqueued).jobId, fromStep);
      return stored as Enqueued;
    });
  const toAnswer = async (row: NewJob, { jobId, created, joined }: Enqueued): Promise<EnqueuedJson> => {
    const { tenantId, type } = row;
    const state = created ? "PENDING" : (await db.asTenant(tenantId, (own) => requireJob(own, jobId))).state;
    return { job_id: jobId, tenant_id: tenantId, type, state, created, joined };
  };
  return {
    async enqueueJob({ body, tenant = "default", request, reply }) {
      const key = idempotencyKey(request.headers["idempotency-key"]);
      const row = await oracle.prepare(body.type, body.input, toOptions(body, tenant, key));
      const stored = await submissions.add(row);
      reply.code(stored.created ? 201 : 200);
      return toAnswer(row, stored);
    },

    async replayJob({ params: { id = "" }, body, within, reply }) {
      const { input, from_step: step } = body;
      if (input !== undefined && step !== undefined) {
        const message = "A replay from a step has the old job's input: give one or the other.";
        throw new OracleError("INVALID_ARGUMENT", message, { field: "$.input" });
      }
      const old = await within((own) => requireJob(own, id));
      const row = await oracle.prepare(old.type, input === undefined ? old.input : input, likeness(old));
      const stored = await replay(row, step);
      reply.code(201);
      return toAnswer(row, stored);
    },

    async listJobs({ query, tenant, within }) {
      const { cursor, limit } = query;
      const after = cursor === undefined ? undefined : fromCursor(cursor, uuidShape)[0];
      const filter = toFilter(query, tenant);
      const { items, next } = await within((own) =>
        list(own, { ...filter, after, limit, withinMs: SEARCH_MS }),
      );
      return {
        items: items.map(jobJson),
        next: next === null ? null : toCursor([next]),
        searched_until: next !== null && items.length < limit ? momentOf(next) : null,
      };
    },

    async getJob({ params: { id = "" }, within }) {
      return within(async (own) => jobWithInputJson(await requireJob(own, id), await getAttempts(own, id)));
    },
  };
}

/** The moment in a version 7 UUID. */
function momentOf(jobId: string): string {
  return new Date(Number.parseInt(jobId.replaceAll("-", "").slice(0, 12), 16)).toISOString();
}
