import type { Job, StoredError } from "../core/job.js";
import type { JobState } from "../core/states.js";

export interface JobRow {
  job_id: string;
  tenant_id: string;
  queue_name: string;
  job_type: string;
  state: JobState;
  idempotency_key: string;
  spec_hash: string;
  priority: number;
  attempt_count: number;
  max_attempts: number;
  interruptions: number;
  timeout_seconds: number | null;
  run_after: Date;
  deadline: Date | null;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  lease_expires_at: Date | null;
  cancel_requested_at: Date | null;
  current_attempt_id: string | null;
  worker_id: string | null;
  hold_reason: string | null;
  replay_of: string | null;
  handler_version: string | null;
  concurrency_key: string | null;
  concurrency_limit: number | null;
  error_json: StoredError | null;
}

export const jobColumns = `j.job_id, j.tenant_id, j.queue_name, j.job_type, j.state::text AS state,
  j.idempotency_key, j.spec_hash, j.priority, j.attempt_count, j.max_attempts, j.interruptions,
  j.timeout_seconds, j.run_after, j.deadline, j.created_at, j.updated_at, j.started_at, j.completed_at,
  j.lease_expires_at, j.cancel_requested_at, j.current_attempt_id, j.worker_id, j.hold_reason, j.replay_of,
  j.handler_version, j.concurrency_key, j.concurrency_limit, j.error_json`;

export function toJob(row: JobRow): Job {
  return {
    jobId: row.job_id,
    tenantId: row.tenant_id,
    queue: row.queue_name,
    type: row.job_type,
    state: row.state,
    idempotencyKey: row.idempotency_key,
    specHash: row.spec_hash,
    priority: row.priority,
    attemptCount: row.attempt_count,
    maxAttempts: row.max_attempts,
    interruptions: row.interruptions,
    timeoutSeconds: row.timeout_seconds,
    runAfter: row.run_after,
    deadline: row.deadline,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    leaseExpiresAt: row.lease_expires_at,
    cancelRequestedAt: row.cancel_requested_at,
    currentAttemptId: row.current_attempt_id,
    workerId: row.worker_id,
    holdReason: row.hold_reason,
    replayOf: row.replay_of,
    handlerVersion: row.handler_version,
    concurrencyKey: row.concurrency_key,
    concurrencyLimit: row.concurrency_limit,
    error: row.error_json,
  };
}
