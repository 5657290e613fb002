export type { ConnectOptions } from "./connect.js";
export { connect } from "./connect.js";
export type { Effect, Step } from "./core/effect.js";
export {
  EffectFailed,
  IdempotencyConflict,
  JobLockConflict,
  JobPreconditionError,
  LeaseLost,
  OracleError,
  PayloadRejected,
  RetryableError,
  TerminalError,
} from "./core/errors.js";
export type { Artifact, Attempt, Job, LockedJob, LogLine, Progress, Result } from "./core/job.js";
export type { Tenant, TenantLimits } from "./core/tenant.js";
export type { CreateWorkerOptions } from "./create-worker.js";
export { createWorker } from "./create-worker.js";
export type { JobContext, JobDefinition } from "./handlers/define.js";
export { defineJob } from "./handlers/define.js";
export type { JobHandle } from "./job-handle.js";
export type { Oracle } from "./oracle.js";
export type { EnqueueOptions } from "./submit.js";
