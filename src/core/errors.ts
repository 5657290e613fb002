/**
 * Every error a user can meet carries one of these codes. The sentence says what the code means; the
 * reference page docs/errors.md lists the same table with what to do, and a test keeps the two equal.
 */
export const errorCodes = {
  INVALID_ARGUMENT: "a value given to a command, function or setting is not allowed",
  INVALID_SETTING: "a setting holds a value it cannot have",
  INVALID_JSON: "the text is not JSON",
  PAYLOAD_REJECTED: "the JSON holds something that cannot be stored and read back unchanged",
  PAYLOAD_TOO_LARGE: "the JSON is larger than the limit",
  PAYLOAD_TOO_DEEP: "the JSON is nested deeper than the limit",
  IDEMPOTENCY_CONFLICT: "the idempotency key belongs to a job with another specification",
  QUOTA_EXCEEDED: "the tenant has as many jobs waiting as it may have",
  RATE_LIMITED: "the tenant submits faster than it may",
  TENANT_EXISTS: "there is a tenant with that name already",
  JOB_NOT_FOUND: "there is no job with that id",
  JOB_LOCK_CONFLICT: "another session holds the job's row right now",
  JOB_PRECONDITION: "the job is not in a state that allows this",
  LEASE_LOST: "the attempt no longer holds the job's lease",
  WAIT_TIMEOUT: "the job did not finish within the time given",
  JOB_FAILED: "the job ended in FAILED_TERMINAL",
  JOB_CANCELLED: "the job was cancelled",
  HANDLER_ERROR: "the handler threw",
  HANDLER_EXITED: "the handler's process ended without an answer",
  HANDLER_PROTOCOL: "the handler's process broke the protocol",
  MEMORY_LIMIT: "the handler's process used more memory than its limit",
  CPU_LIMIT: "the handler's process computed longer than its limit",
  INPUT_INVALID: "the input breaks the job type's input schema",
  OUTPUT_INVALID: "the output breaks the job type's output schema",
  OUTPUT_REJECTED: "the output cannot be stored",
  UNSUPPORTED_JOB_TYPE: "no live worker has a handler for the job type",
  STEP_REPEATED: "a step's name was used twice in one attempt",
  EFFECT_CONFLICT: "the effect's name stands for another request, or was used twice in one attempt",
  EFFECT_OPEN: "the handler returned while a step or an effect was still open",
  EFFECT_FAILED: "the effect did not happen",
  EFFECT_IN_DOUBT: "nobody knows whether the effect happened",
  EFFECT_NOT_PLANNED: "the effect is not part of the job's plan",
  EFFECT_NOT_FOUND: "there is no effect with that id",
  PLAN_REJECTED: "a person has rejected the job's plan",
  COMMIT_FAILED: "a statement that was to commit with the result failed",
  TIMEOUT: "the attempt ran longer than its timeout",
  DEADLINE_EXCEEDED: "the job's deadline passed before it finished",
  SHUTDOWN: "the worker is stopping",
  WORKER_CRASHED: "the process that ran the attempt died",
  LEASE_EXPIRED: "the attempt's lease ran out without renewal",
  WORKER_BLOCKED:
    "a handler blocked the worker's event loop past its timeout, and the worker takes no more jobs",
  WORKER_BROKEN: "the thread that renews the worker's leases died",
  HANDLERS_INVALID: "the handlers path cannot be loaded or defines nothing usable",
  DATABASE_UNREACHABLE: "the database does not answer",
  DATABASE_AUTH: "the database refuses the login",
  DATABASE_ENCODING: "the database is not UTF8",
  DATABASE_VERSION: "the server's version is not supported",
  DATABASE_FULL: "the database has no room left",
  SCHEMA_MISSING: "the schema has not been migrated",
  SCHEMA_OUTDATED: "the schema is older than this program",
  SCHEMA_NEWER: "the schema is newer than this program",
  SCHEMA_DRIFT: "the schema differs from what the migrations make",
  ROLE_REFUSED: "the connection cannot run as the restricted role",
  ROW_SECURITY: "a table, view or policy lets one tenant see another's rows",
  EMBEDDED_UNAVAILABLE: "the embedded Postgres cannot be used here",
  EMBEDDED_LOCKED: "the embedded Postgres data directory is in use by something else",
  TOKEN_NOT_FOUND: "there is no such token",
  CHECK_FAILED: "doctor found something that is wrong",
  ARTIFACT_NOT_FOUND: "there is no artifact with that name, digest or id",
  ARTIFACT_STORE: "the artifact store cannot be read or written",
  EVOLUTION_REPOSITORY: "the git repository of an evolution job cannot be used",
  EVOLUTION_EDITS: "the coder's changes cannot be applied safely",
  EVOLUTION_UNCHANGED: "the coder changed nothing",
  EVOLUTION_EVALUATION: "the evaluator failed or measured nothing of use",
  EVOLUTION_BRANCH: "the branch for the best commit cannot be moved there without harm",
  EVOLUTION_STORE: "an evolution job could not be started, or its success not be stored",
  UNAUTHENTICATED: "the call carries no token, or one that is unknown or revoked",
  FORBIDDEN: "the token does not allow this call",
  NOT_FOUND: "there is nothing at that address",
  ADDRESS_REFUSED: "the server cannot or may not listen at that address",
  VERIFY_FAILED: "a recomputed hash differs from the stored one",
  INTERNAL: "a fault in oracle-worker itself",
} as const;

export type ErrorCode = keyof typeof errorCodes;

export interface ErrorDetails {
  /** The field, flag, setting or JSON path that is wrong. */
  field?: string;
  /** The job the error speaks of. */
  jobId?: string;
  /** When the same call may succeed. */
  retryAfterSeconds?: number;
  /** Whether another attempt of a job may end otherwise. Default: the code decides. */
  retryable?: boolean;
  cause?: unknown;
}

/** The base of every error thrown on purpose. `message` says what is wrong and what would be right. */
export class OracleError extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly jobId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly retryable: boolean | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.field = details.field;
    this.jobId = details.jobId;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.retryable = details.retryable;
  }

  toJSON(): {
    code: ErrorCode;
    message: string;
    field?: string;
    job_id?: string;
    retry_after_seconds?: number;
  } {
    return {
      code: this.code,
      message: this.message,
      ...(this.field === undefined ? {} : { field: this.field }),
      ...(this.jobId === undefined ? {} : { job_id: this.jobId }),
      ...(this.retryAfterSeconds === undefined ? {} : { retry_after_seconds: this.retryAfterSeconds }),
    };
  }
}

/** Thrown by a handler: try again later, `retryAfterSeconds` from now at the earliest. */
export class RetryableError extends OracleError {
  constructor(message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super("HANDLER_ERROR", message, options);
  }
}

/** Thrown by a handler: trying again would not help. */
export class TerminalError extends OracleError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("HANDLER_ERROR", message, options);
  }
}

/** Thrown inside an effect: it definitely did not happen. Anything else that is thrown there leaves it in doubt. */
export class EffectFailed extends OracleError {
  /** With `retryable` false, trying again would not help. */
  constructor(
    message: string,
    options: { retryable?: boolean; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super("EFFECT_FAILED", message, { retryable: true, ...options });
  }
}

export class LeaseLost extends OracleError {
  constructor(jobId: string, why: string) {
    super("LEASE_LOST", `The lease on job ${jobId} is lost: ${why}.`, { jobId });
  }
}

export class JobLockConflict extends OracleError {
  constructor(jobId: string, cause?: unknown) {
    super("JOB_LOCK_CONFLICT", `Job ${jobId} is locked by another session; try again.`, { jobId, cause });
  }
}

export class JobPreconditionError extends OracleError {
  constructor(jobId: string, why: string, details: Pick<ErrorDetails, "retryable" | "cause"> = {}) {
    super("JOB_PRECONDITION", `Job ${jobId} ${why}.`, { jobId, ...details });
  }
}

export class IdempotencyConflict extends OracleError {
  constructor(
    readonly key: string,
    jobId: string,
  ) {
    super(
      "IDEMPOTENCY_CONFLICT",
      `Key ${JSON.stringify(key)} belongs to job ${jobId}, which has another type or input; use another key.`,
      { field: "key", jobId },
    );
  }
}

export class PayloadRejected extends OracleError {
  /** Where in the JSON, e.g. `$.items[3].name`. */
  constructor(
    code: "PAYLOAD_REJECTED" | "PAYLOAD_TOO_LARGE" | "PAYLOAD_TOO_DEEP" | "INVALID_JSON",
    path: string,
    message: string,
  ) {
    super(code, message, { field: path });
  }
}
