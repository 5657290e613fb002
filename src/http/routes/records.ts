import { JobPreconditionError } from "../../core/errors.js";
import { getEffects } from "../../store/list-effects.js";
import { getAttempts, getResult, requireJob } from "../../store/read.js";
import { getSteps } from "../../store/steps.js";
import { verifyJob } from "../../verify.js";
import type { Handlers } from "../call.js";
import { attemptJson, effectJson, resultJson, stepJson } from "../to-json.js";

type Records = "getResult" | "verifyJob" | "listAttempts" | "listSteps" | "listJobEffects";

/** What is on record about one job. Each looks for the job first: one that is not there has no empty list. */
export function recordRoutes(): Handlers<Records> {
  return {
    getResult: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId, state } = await requireJob(db, id);
        const result = await getResult(db, jobId);
        if (result) return resultJson(result);
        throw new JobPreconditionError(jobId, `is ${state}: only a SUCCEEDED job has a result`);
      }),

    verifyJob: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { job, checks } = await verifyJob(db, id);
        return { job_id: job.jobId, verified: checks.every(({ matches }) => matches), checks };
      }),

    listAttempts: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        return { items: (await getAttempts(db, jobId)).map(attemptJson), next: null };
      }),

    listSteps: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        return { items: (await getSteps(db, jobId)).map(stepJson), next: null };
      }),

    listJobEffects: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        return { items: (await getEffects(db, jobId)).map(effectJson), next: null };
      }),
  };
}
