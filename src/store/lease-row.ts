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

const commonValues = {
  attempt_no: 1,
  interruptions: 0,
  max_attempts: 3,
  tenant_id: "default",
  queue_name: "default",
  priority: 0,
};

type Common = keyof typeof commonValues | "idempotency_key";

/** With NULL for what most jobs have in common: a value costs more to send and to read than to leave out. */
export type LeanLeaseRow = Omit<LeaseRow, "state" | Common> & { [Column in Common]: LeaseRow[Column] | null };

/** What to select for it. */
export const leanLeaseColumns = [
  "job_id, attempt_id, job_type, ready_since, timeout_seconds, deadline, deadline_in_seconds, handler_version",
  "last_error, replay_of, holds_slot, input_payload",
  "nullif(idempotency_key, job_id::text) AS idempotency_key",
  ...Object.entries(commonValues).map(
    ([column, value]) =>
      `nullif(${column}, ${typeof value === "string" ? `'${value}'` : value}) AS ${column}`,
  ),
].join(", ");

export function toLease(row: LeanLeaseRow): Lease {
  return {
    jobId: row.job_id,
    attemptId: row.attempt_id,
    attemptNo: row.attempt_no ?? commonValues.attempt_no,
    interruptions: row.interruptions ?? commonValues.interruptions,
    maxAttempts: row.max_attempts ?? commonValues.max_attempts,
    tenantId: row.tenant_id ?? commonValues.tenant_id,
    queue: row.queue_name ?? commonValues.queue_name,
    type: row.job_type,
    idempotencyKey: row.idempotency_key ?? row.job_id,
    priority: row.priority ?? commonValues.priority,
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
