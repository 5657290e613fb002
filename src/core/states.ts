import { OracleError } from "./errors.js";

export const jobStates = [
  "PENDING",
  "RUNNING",
  "SUCCEEDED",
  "FAILED_RETRYABLE",
  "FAILED_TERMINAL",
  "CANCELLED",
] as const;
export type JobState = (typeof jobStates)[number];

export const attemptStatuses = [
  "RUNNING",
  "SUCCEEDED",
  "FAILED",
  "LEASE_EXPIRED",
  "RELEASED",
  "CANCELLED",
  "SUPERSEDED",
] as const;
export type AttemptStatus = (typeof attemptStatuses)[number];

/** Words that other queues use for the same states; accepted wherever a state is asked for. */
const otherWords: Record<string, JobState> = {
  SUCCESSFUL: "SUCCEEDED",
  RETRYING: "FAILED_RETRYABLE",
  FAILED: "FAILED_TERMINAL",
  QUEUED: "PENDING",
};

export function parseJobState(word: string, field = "state"): JobState {
  const upper = String(word).toUpperCase();
  const state = jobStates.find((known) => known === upper) ?? otherWords[upper];
  if (state) return state;
  const known = [...jobStates, ...Object.keys(otherWords)].join(", ");
  throw new OracleError("INVALID_ARGUMENT", `${JSON.stringify(word)} is not a job state. Known: ${known}.`, {
    field,
  });
}

export function isFinished(state: JobState): boolean {
  return state === "SUCCEEDED" || state === "FAILED_TERMINAL" || state === "CANCELLED";
}
