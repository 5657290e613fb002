import { JobPreconditionError } from "../../core/errors.js";
import { listArtifacts } from "../../store/artifact.js";
import { getEffects } from "../../store/list-effects.js";
import { getLogs } from "../../store/logs.js";
import { getAttempts, getResult, requireJob } from "../../store/read.js";
import { getSteps } from "../../store/steps.js";
import { verifyJob } from "../../verify.js";
import type { Handlers, Services } from "../call.js";
import { fromCursor, toCursor } from "../cursor.js";
import { artifactJson, attemptJson, effectJson, logLineJson, resultJson, stepJson } from "../to-json.js";

type Records =
  | "getResult"
  | "verifyJob"
  | "listAttempts"
  | "listLogs"
  | "listArtifacts"
  | "listSteps"
  | "listJobEffects";

const placeShape = /^\d{1,9} \d{1,9}$/;

function toPlace([attemptNo, seq]: string[]) {
  return { attemptNo: Number(attemptNo), seq: Number(seq) };
}

/** What is on record about one job. Each looks for the job first: one that is not there has no empty list. */
export function recordRoutes({ oracle }: Services): Handlers<Records> {
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
        const { job, checks } = await verifyJob({ db, artifactStore: () => oracle.artifactStore() }, id);
        return { job_id: job.jobId, verified: checks.every(({ matches }) => matches), checks };
      }),

    listAttempts: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        return { items: (await getAttempts(db, jobId)).map(attemptJson), next: null };
      }),

    listLogs: ({ params: { id = "" }, query, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        const { attempt, cursor, limit } = query;
        const start = attempt === undefined ? undefined : { attemptNo: attempt, seq: 0 };
        const after = cursor === undefined ? start : toPlace(fromCursor(cursor, placeShape));
        const lines = await getLogs(db, jobId, { after, limit: limit + 1 });
        const ours = lines.filter(({ attemptNo }) => attempt === undefined || attemptNo === attempt);
        const shown = ours.slice(0, limit);
        const last = shown.at(-1);
        const next = ours.length > limit && last ? toCursor([last.attemptNo, last.seq]) : null;
        return { items: shown.map(logLineJson), next };
      }),

    listArtifacts: ({ params: { id = "" }, within }) =>
      within(async (db) => {
        const { jobId } = await requireJob(db, id);
        return { items: (await listArtifacts(db, jobId)).map(artifactJson), next: null };
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
