import type { Lease, Outcome } from "./job.js";
import type { JobState } from "./states.js";

/** What a worker tells after it has happened: log, metrics and traces subscribe, nothing asks them back. */
export type WorkerEvent =
  | { event: "worker.started"; workerId: string; queues: string[]; jobTypes: string[]; concurrency: number }
  | { event: "worker.draining"; workerId: string; running: number }
  | { event: "worker.stopped"; workerId: string; handedBack: number; abandoned: number }
  | { event: "jobs.claimed"; workerId: string; leases: Lease[] }
  | { event: "job.started"; workerId: string; lease: Lease }
  | {
      event: "job.settled";
      workerId: string;
      lease: Lease;
      outcome: Outcome;
      state: JobState;
      seconds: number;
    }
  | { event: "job.ended"; workerId: string; jobId: string; tenantId: string; type: string; state: string }
  | { event: "lease.lost"; workerId: string; lease: Lease; why: string }
  /** The event loop was blocked past the attempt's timeout; the worker takes no more jobs. */
  | { event: "worker.blocked"; workerId: string; jobId: string }
  /** The thread that renews leases died; the worker stops its handlers and takes no more jobs. */
  | { event: "worker.broken"; workerId: string; why: string }
  | { event: "database.trouble"; workerId: string; during: string; error: unknown }
  | { event: "database.recovered"; workerId: string; during: string }
  /** A pass over finished jobs has come to its end, and deleted this many. */
  | { event: "jobs.pruned"; workerId: string; jobs: number }
  /** A message named a job whose lease could not be won. */
  | { event: "acquire.lost"; workerId: string; jobId: string; why: string }
  | { event: "dispatch.lost"; workerId: string; why: string }
  | { event: "dispatch.restored"; workerId: string }
  | { event: "wakeup.lost"; workerId: string; why: string }
  | { event: "wakeup.restored"; workerId: string };

export type WorkerEventListener = (event: WorkerEvent) => void;

/** What a handler may write while it runs. */
export interface JobLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}
