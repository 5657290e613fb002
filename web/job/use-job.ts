import { useQuery } from "@tanstack/react-query";
import { isFinished } from "../../src/core/states.js";
import type { JobJson } from "../../src/http/client.js";
import { api, LIVE_MS } from "../api.js";

/** One place for the names under which a job's parts are kept. */
export const keys = {
  job: (id: string) => ["job", id],
  attempts: (id: string) => ["job", id, "attempts"],
  logs: (id: string, attempt: number) => ["job", id, "logs", attempt],
  result: (id: string) => ["job", id, "result"],
  steps: (id: string) => ["job", id, "steps"],
  effects: (id: string) => ["job", id, "effects"],
  artifacts: (id: string) => ["job", id, "artifacts"],
};

/** Beside the stream, should it be held up on its way. */
const BESIDE_STREAM_MS = 10_000;

/** The stream keeps it up to date while it is unfinished; afterwards only a retry changes it. */
export function useJob(id: string) {
  return useQuery({
    queryKey: keys.job(id),
    queryFn: ({ signal }) => api.getJob({ params: { id } }, signal),
    refetchInterval: ({ state: { data } }) => (data && !isFinished(data.state) ? BESIDE_STREAM_MS : LIVE_MS),
  });
}

export function useAttempts({ job_id: id, state }: JobJson) {
  return useQuery({
    queryKey: keys.attempts(id),
    queryFn: async ({ signal }) => (await api.listAttempts({ params: { id } }, signal)).items,
    refetchInterval: isFinished(state) ? false : BESIDE_STREAM_MS,
  });
}

export function useResult(job: JobJson) {
  return useQuery({
    queryKey: keys.result(job.job_id),
    queryFn: ({ signal }) => api.getResult({ params: { id: job.job_id } }, signal),
    enabled: job.state === "SUCCEEDED",
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What an attempt leaves behind is asked for while the job can still leave more. */
function whileUnfinished(job: JobJson) {
  return isFinished(job.state) ? false : LIVE_MS;
}

export function useSteps(job: JobJson) {
  return useQuery({
    queryKey: keys.steps(job.job_id),
    queryFn: async ({ signal }) => (await api.listSteps({ params: { id: job.job_id } }, signal)).items,
    refetchInterval: whileUnfinished(job),
  });
}

export function useJobEffects(job: JobJson) {
  return useQuery({
    queryKey: keys.effects(job.job_id),
    queryFn: async ({ signal }) => (await api.listJobEffects({ params: { id: job.job_id } }, signal)).items,
    refetchInterval: whileUnfinished(job),
  });
}

export function useArtifacts(job: JobJson) {
  return useQuery({
    queryKey: keys.artifacts(job.job_id),
    queryFn: async ({ signal }) => (await api.listArtifacts({ params: { id: job.job_id } }, signal)).items,
    refetchInterval: whileUnfinished(job),
  });
}
