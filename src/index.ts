export type { ConnectOptions } from "./connect.js";
export { connect } from "./connect.js";
export {
  IdempotencyConflict,
  JobLockConflict,
  JobPreconditionError,
  LeaseLost,
  OracleError,
  PayloadRejected,
  RetryableError,
  TerminalError,
} from "./core/errors.js";
export type { Attempt, Job, LockedJob, Result } from "./core/job.js";
export type { CreateWorkerOptions } from "./create-worker.js";
export { createWorker } from "./create-worker.js";
export type { JobContext, JobDefinition } from "./handlers/define.js";
export { defineJob } from "./handlers/define.js";
export type { JobHandle, Oracle } from "./oracle.js";
export type { EnqueueOptions } from "./submit.js";
