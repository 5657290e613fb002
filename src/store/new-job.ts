import type { OracleError } from "../core/errors.js";
import type { SqlClient } from "./database.js";

/** One job as the submitter decides it; defaults are the table's. */
export interface NewJob {
  jobId: string;
  tenantId: string;
  queue: string;
  type: string;
  /** Undefined: the job's own id. */
  key: string | undefined;
  inputText: string;
  specHash: string;
  dedupe: "active" | "result" | undefined;
  priority: number;
  maxAttempts: number;
  timeoutSeconds: number | undefined;
  /** Absolute, or seconds from now by the database's clock. */
  runAfter: Date | number | undefined;
  /** The same. */
  deadline: Date | number | undefined;
  handlerVersion: string | undefined;
  concurrencyKey: string | undefined;
  concurrencyLimit: number | undefined;
  replayOf: string | undefined;
}

export interface Enqueued {
  jobId: string;
  /** False: the job was there already, joined by its key, by an unfinished twin or by a twin's result. */
  created: boolean;
  joined: "key" | "active" | "result" | null;
}

/** What became of one job among several, each of which stands for itself. */
export type Outcome = Enqueued | OracleError;

export interface SubmitOptions {
  /** Inside this client's transaction. */
  client?: SqlClient | undefined;
  /** The caller announces the jobs through a broker itself; the outbox waits a moment before it does. */
  announcing?: boolean;
}
