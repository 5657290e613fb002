import type { ErrorCode } from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import type { JobState } from "../core/states.js";

/** The type `lease` of 005_lease_functions.sql: what claim, acquire and reclaim return of a job. */
export interface LeaseRow {
  job_id: string;
  attempt_id: string;
  attempt_no: number;
  interruptions: number;
  max_attempts: number;
  tenant_id: string;
  queue_name: string;
  job_type: string;
  idempotency_key: string;
  priority: number;
  ready_since: number;
  timeout_seconds: number | null;
  deadline: Date | null;
  deadline_in_seconds: number | null;
  handler_version: string | null;
  /** PARKED: no lease, see claim_jobs. */
  state: JobState | "PARKED";
  last_error: ErrorCode | null;
  replay_of: string | null;
  holds_slot: boolean | null;
  input_payload: JsonValue;
}

export function toLease(row: LeaseRow): Lease {
  return {
    jobId: row.job_id,
    attemptId: row.attempt_id,
    attemptNo: row.attempt_no,
    interruptions: row.interruptions,
    maxAttempts: row.max_attempts,
    tenantId: row.tenant_id,
    queue: row.queue_name,
    type: row.job_type,
    idempotencyKey: row.idempotency_key,
    priority: row.priority,
    readySince: row.ready_since,
    timeoutSeconds: row.timeout_seconds,
    deadline: row.deadline,
    deadlineInSeconds: row.deadline_in_seconds,
    handlerVersion: row.handler_version,
    lastError: row.last_error,
    replayOf: row.replay_of,
    holdsSlot: row.holds_slot === true,
    input: row.input_payload,
  };
}
