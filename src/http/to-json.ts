import type { Effect, Step } from "../core/effect.js";
import type { Artifact, Attempt, Job, LogLine, Progress, Result } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import type { Tenant } from "../core/tenant.js";
import type {
  ArtifactJson,
  AttemptJson,
  EffectJson,
  JobJson,
  JobWithInputJson,
  LogLineJson,
  ProgressJson,
  ResultJson,
  StepJson,
} from "./types.js";

/** Rows as the API shows them: the names of the tables, moments in ISO 8601. */
export function jobJson(job: Job): JobJson {
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
    run_after: iso(job.runAfter),
    deadline: isoOrNull(job.deadline),
    created_at: iso(job.createdAt),
    updated_at: iso(job.updatedAt),
    started_at: isoOrNull(job.startedAt),
    completed_at: isoOrNull(job.completedAt),
    lease_expires_at: isoOrNull(job.leaseExpiresAt),
    cancel_requested_at: isoOrNull(job.cancelRequestedAt),
    current_attempt_id: job.currentAttemptId,
    worker_id: job.workerId,
    hold_reason: job.holdReason,
    replay_of: job.replayOf,
    handler_version: job.handlerVersion,
    concurrency_key: job.concurrencyKey,
    concurrency_limit: job.concurrencyLimit,
    error: job.state === "SUCCEEDED" ? null : job.error,
  };
}

export function jobWithInputJson(job: Job & { input: JsonValue }, attempts: Attempt[]): JobWithInputJson {
  const current = attempts.find(({ attemptNo }) => attemptNo === job.attemptCount);
  return { ...jobJson(job), input: job.input, progress: current ? attemptJson(current).progress : null };
}

export function attemptJson(attempt: Attempt): AttemptJson {
  return {
    attempt_id: attempt.attemptId,
    attempt_no: attempt.attemptNo,
    status: attempt.status,
    worker_id: attempt.workerId,
    handler_version: attempt.handlerVersion,
    cause: attempt.cause,
    error: attempt.error,
    started_at: iso(attempt.startedAt),
    ended_at: isoOrNull(attempt.endedAt),
    late_output: attempt.lateOutput,
    progress: attempt.progress && progressJson(attempt.attemptNo, attempt.progress),
    tokens: attempt.tokens,
    cost: attempt.cost,
  };
}

function progressJson(attemptNo: number, { at, fraction, message, details }: Progress): ProgressJson {
  return { attempt_no: attemptNo, at: iso(at), fraction, message: message ?? null, details: details ?? null };
}

export function logLineJson({ attemptNo, at, ...line }: LogLine): LogLineJson {
  return { attempt_no: attemptNo, at: iso(at), ...line };
}

export function artifactJson(artifact: Artifact): ArtifactJson {
  return {
    artifact_id: artifact.artifactId,
    attempt_no: artifact.attemptNo,
    name: artifact.name,
    type: artifact.type,
    media_type: artifact.mediaType,
    sha256: artifact.sha256,
    size: artifact.size,
    created_at: iso(artifact.createdAt),
  };
}

/** What a tenant has waiting and running, and what it has used. */
export function accountJson(tenant: Tenant) {
  return {
    waiting: tenant.waiting,
    running: tenant.running,
    jobs: tenant.jobs,
    succeeded: tenant.succeeded,
    attempts: tenant.attempts,
    run_seconds: tenant.runSeconds,
    tokens: tenant.tokens,
    cost: tenant.cost,
    bytes: tenant.bytes,
  };
}

export function resultJson(result: Result): ResultJson {
  return {
    job_id: result.jobId,
    attempt_id: result.attemptId,
    result: result.payload,
    content_hash: result.contentHash,
    provenance_hash: result.provenanceHash,
    result_schema_version: result.schemaVersion,
    created_at: iso(result.createdAt),
  };
}

export function stepJson(step: Step): StepJson {
  return {
    name: step.name,
    seq: step.seq,
    attempt_no: step.attemptNo,
    value: step.value ?? null,
    value_hash: step.valueHash,
    artifact_id: step.artifactId,
    created_at: iso(step.createdAt),
  };
}

export function effectJson(effect: Effect): EffectJson {
  return {
    effect_id: effect.effectId,
    job_id: effect.jobId,
    tenant_id: effect.tenantId,
    name: effect.name,
    kind: effect.kind,
    state: effect.state,
    idempotency_key: effect.idempotencyKey,
    request: effect.request,
    request_hash: effect.requestHash,
    response: effect.response,
    response_hash: effect.responseHash,
    error: effect.error,
    attempt_no: effect.attemptNo,
    dispatches: effect.dispatches,
    planned_at: iso(effect.plannedAt),
    approved_at: isoOrNull(effect.approvedAt),
    dispatched_at: isoOrNull(effect.dispatchedAt),
    settled_at: isoOrNull(effect.settledAt),
    in_doubt_at: isoOrNull(effect.inDoubtAt),
    approved_by: effect.approvedBy,
    resolved_by: effect.resolvedBy,
    evidence: effect.evidence,
  };
}

const LATEST = "9999-12-31T23:59:59.999Z";
const EARLIEST = "0001-01-01T00:00:00.000Z";

/** Postgres knows moments that ISO 8601 does not, and SQL may have stored one: infinity, or the year 20000. */
export function iso(moment: Date): string {
  const at = Number(moment);
  if (at >= Date.parse(LATEST)) return LATEST;
  return at <= Date.parse(EARLIEST) ? EARLIEST : moment.toISOString();
}

export function isoOrNull(moment: Date | null): string | null {
  return moment === null ? null : iso(moment);
}
