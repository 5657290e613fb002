import type { Attempt, Job, LogLine } from "../core/job.js";

/** A job as machines read it: the names of the tables and of the HTTP API, times in ISO 8601. */
export function jobJson(job: Job) {
  return {
    job_id: job.jobId,
    tenant_id: job.tenantId,
    type: job.type,
    state: job.state,
    queue: job.queue,
    priority: job.priority,
    idempotency_key: job.idempotencyKey,
    spec_hash: job.specHash,
    attempt_count: job.attemptCount,
    max_attempts: job.maxAttempts,
    interruptions: job.interruptions,
    timeout_seconds: job.timeoutSeconds,
    run_after: job.runAfter,
    deadline: job.deadline,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
    started_at: job.startedAt,
    completed_at: job.completedAt,
    lease_expires_at: job.leaseExpiresAt,
    cancel_requested_at: job.cancelRequestedAt,
    current_attempt_id: job.currentAttemptId,
    worker_id: job.workerId,
    hold_reason: job.holdReason,
    replay_of: job.replayOf,
    handler_version: job.handlerVersion,
    concurrency_key: job.concurrencyKey,
    concurrency_limit: job.concurrencyLimit,
    // The last attempt's; a job that succeeded in the end has none, its attempts keep theirs.
    ...(job.error && job.state !== "SUCCEEDED" ? { error: job.error } : {}),
  };
}

export function attemptJson(attempt: Attempt) {
  return {
    attempt_id: attempt.attemptId,
    attempt_no: attempt.attemptNo,
    status: attempt.status,
    worker_id: attempt.workerId,
    handler_version: attempt.handlerVersion,
    cause: attempt.cause,
    error: attempt.error,
    started_at: attempt.startedAt,
    ended_at: attempt.endedAt,
    progress: attempt.progress,
    tokens: attempt.tokens,
    cost: attempt.cost,
    // What an attempt brought that had lost its lease.
    ...(attempt.lateOutput === null ? {} : { late_output: attempt.lateOutput }),
  };
}

export function logJson({ attemptNo, seq, at, level, message, fields }: LogLine) {
  return { attempt_no: attemptNo, seq, at, level, message, fields };
}
