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
  /** At most `concurrencyLimit` jobs of the tenant with this key run at a time. */
  concurrencyKey: string | null;
  concurrencyLimit: number | null;
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
  /** How the attempt before this one failed. */
  lastError: ErrorCode | null;
  /** The job that this one replays. */
  replayOf: string | null;
  /** It counts against a cap: when it ends, another job may start. */
  holdsSlot: boolean;
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
  | Success
  | { kind: "retryable"; error: StoredError; delaySeconds: number }
  | { kind: "terminal"; error: StoredError }
  /** Handed back without fault of its own; costs no attempt, up to a cap. */
  | { kind: "released"; cause: string; delaySeconds: number }
  /** Waits by its own wish; never costs an attempt. */
  | { kind: "snoozed"; delaySeconds: number }
  /** Waits for a person. With an error it counts as a failure, without one it costs nothing. */
  | { kind: "held"; reason: HoldReason; error?: StoredError }
  | { kind: "cancelled" };

export type HoldReason = "effect in doubt" | "awaiting approval";

export interface Success {
  kind: "succeeded";
  resultText: string;
  contentHash: string;
  /** Whether the job may have steps, effects or artifacts, which its provenance then covers. */
  recorded?: boolean;
  /** What commits together with the result, and when to try again if it cannot. */
  commits?: { statements: CommitStatement[]; delaySeconds: number };
}

/** SQL that a handler wants committed together with its result. */
export interface CommitStatement {
  name: string;
  seq: number;
  sql: string;
  values: JsonValue[];
  /** A statement of the store itself: run as the worker's role, not as the login. */
  own?: true;
}

export interface Attempt {
  attemptId: string;
  attemptNo: number;
  status: AttemptStatus;
  workerId: string;
  handlerVersion: string | null;
  cause: string | null;
  error: StoredError | null;
  startedAt: Date;
  endedAt: Date | null;
  lateOutput: JsonValue | null;
  /** Its latest word on how far it is. */
  progress: Progress | null;
  /** What it said it used of models and other services. */
  tokens: number | null;
  cost: number | null;
}

export interface Progress {
  /** From 0 to 1. */
  fraction: number;
  message?: string;
  details?: JsonValue;
  /** By the database's clock, like every moment kept. */
  at: Date;
}

export type LogLevel = "info" | "warn" | "error";

/** One line of an attempt's log. Attempt and number together order a job's lines. */
export interface LogLine {
  attemptNo: number;
  seq: number;
  at: Date;
  level: LogLevel;
  message: string;
  fields: { [key: string]: JsonValue } | null;
}

/** A by-product of an attempt, without its bytes. */
export interface Artifact {
  artifactId: string;
  jobId: string;
  attemptNo: number;
  tenantId: string;
  /** What the handler gave: JSON (kept in its canonical form), a text, or bytes. */
  type: "json" | "text" | "bytes";
  /** As the handler said it; `safeFileName` makes a file's name of it. */
  name: string;
  mediaType: string;
  sha256: string;
  size: number;
  createdAt: Date;
}

export interface Result {
  jobId: string;
  attemptId: string;
  payload: JsonValue;
  contentHash: string;
  /** Over specification, handler version, attempt, result, steps, effects and artifacts. */
  provenanceHash: string;
  modelMetadata: JsonValue;
  schemaVersion: number;
  createdAt: Date;
}
