import type { ErrorCode } from "./errors.js";
import type { JsonValue } from "./json.js";
import type { AttemptStatus, JobState } from "./states.js";

/** A job's row, without its input. */
export interface Job {
  jobId: string;
  tenantId: string;
  queue: string;
  type: string;
  state: JobState;
  idempotencyKey: string;
  specHash: string;
  priority: number;
  attemptCount: number;
  maxAttempts: number;
  interruptions: number;
  timeoutSeconds: number | null;
  runAfter: Date;
  deadline: Date | null;
  createdAt: Date;
  updatedAt: Date;
  startedAt: Date | null;
  completedAt: Date | null;
  leaseExpiresAt: Date | null;
  cancelRequestedAt: Date | null;
  currentAttemptId: string | null;
  workerId: string | null;
  holdReason: string | null;
  replayOf: string | null;
  handlerVersion: string | null;
  error: StoredError | null;
}

/** What a worker holds while it runs a job. `attemptId` is the fencing token of every later write. */
export interface Lease {
  jobId: string;
  attemptId: string;
  attemptNo: number;
  /** Attempts that cost the job nothing; `attemptNo - interruptions` is how often it really tried. */
  interruptions: number;
  maxAttempts: number;
  tenantId: string;
  queue: string;
  type: string;
  idempotencyKey: string;
  priority: number;
  /** When it became due, in seconds since 1970 and down to the microsecond: for the order only. */
  readySince: number;
  timeoutSeconds: number | null;
  deadline: Date | null;
  /** Counted by the database's clock when the lease was given: this machine's may be wrong. */
  deadlineInSeconds: number | null;
  handlerVersion: string | null;
  input: JsonValue;
}

/** The frozen snapshot that `startJob` returns: the lease of a job started by its id. */
export type LockedJob = Readonly<Lease>;

/** An error as the tables keep it: plain, storable, with the class that decides what follows. */
export interface StoredError {
  code: ErrorCode;
  message: string;
  retryable: boolean;
  /** The thrown error's own class name. */
  name?: string;
  stack?: string;
  field?: string;
}

/** How an attempt ended. Data, not control flow: `store/settle` writes it, nothing else does. */
export type Outcome =
  | { kind: "succeeded"; resultText: string; contentHash: string }
  | { kind: "retryable"; error: StoredError; delaySeconds: number }
  | { kind: "terminal"; error: StoredError }
  /** Handed back without fault of its own; costs no attempt, up to a cap. */
  | { kind: "released"; cause: string; delaySeconds: number }
  /** Waits by its own wish; never costs an attempt. */
  | { kind: "snoozed"; delaySeconds: number }
  | { kind: "cancelled" };

export interface Attempt {
  attemptId: string;
  attemptNo: number;
  status: AttemptStatus;
  workerId: string;
  cause: string | null;
  error: StoredError | null;
  startedAt: Date;
  endedAt: Date | null;
  lateOutput: JsonValue | null;
}

export interface Result {
  jobId: string;
  attemptId: string;
  payload: JsonValue;
  contentHash: string;
  schemaVersion: number;
  createdAt: Date;
}
