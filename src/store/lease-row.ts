import type { ErrorCode } from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import type { JobState } from "../core/states.js";

/**
 * What to select of the type `lease` of 005_lease_functions.sql, which claim, acquire and reclaim return of a job.
 * NULL stands for what most jobs have in common: a value costs more to send and to read than to leave out.
 */
export const leaseColumns = `job_id, attempt_id, nullif(state, 'RUNNING'), job_type, ready_since, input_payload,
  nullif(idempotency_key, job_id::text), nullif(tenant_id, 'default'), nullif(queue_name, 'default'),
  nullif(attempt_no, 1), nullif(interruptions, 0), nullif(max_attempts, 3), nullif(priority, 0),
  timeout_seconds, deadline, deadline_in_seconds, handler_version, last_error, replay_of, holds_slot`;

export type LeaseRow = [
  jobId: string,
  attemptId: string,
  /** PARKED: no lease, see claim_jobs. */
  notRunning: JobState | "PARKED" | null,
  type: string,
  readySince: number,
  input: JsonValue,
  key: string | null,
  tenantId: string | null,
  queue: string | null,
  attemptNo: number | null,
  interruptions: number | null,
  maxAttempts: number | null,
  priority: number | null,
  timeoutSeconds: number | null,
  deadline: Date | null,
  deadlineInSeconds: number | null,
  handlerVersion: string | null,
  lastError: ErrorCode | null,
  replayOf: string | null,
  holdsSlot: boolean | null,
];

/** The job's state, unless this is a lease. */
export function notRunning(row: LeaseRow): JobState | "PARKED" | null {
  return row[2];
}

export function toLease(row: LeaseRow): Lease {
  return {
    jobId: row[0],
    attemptId: row[1],
    attemptNo: row[9] ?? 1,
    interruptions: row[10] ?? 0,
    maxAttempts: row[11] ?? 3,
    tenantId: row[7] ?? "default",
    queue: row[8] ?? "default",
    type: row[3],
    idempotencyKey: row[6] ?? row[0],
    priority: row[12] ?? 0,
    readySince: row[4],
    timeoutSeconds: row[13],
    deadline: row[14],
    deadlineInSeconds: row[15],
    handlerVersion: row[16],
    lastError: row[17],
    replayOf: row[18],
    holdsSlot: row[19] === true,
    input: row[5],
  };
}
