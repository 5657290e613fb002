import type { Lease, Outcome } from "./job.js";
import type { JobState } from "./states.js";

/** What a worker tells after it has happened: log, metrics and traces subscribe, nothing asks them back. */
export type WorkerEvent =
  | { event: "worker.started"; workerId: string; queues: string[]; jobTypes: string[]; concurrency: number }
  | { event: "worker.draining"; workerId: string; running: number }
  | { event: "worker.stopped"; workerId: string; handedBack: number; abandoned: number }
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
  | { event: "database.trouble"; workerId: string; during: string; error: unknown }
  | { event: "database.recovered"; workerId: string; during: string }
  | { event: "wakeup.lost"; workerId: string; why: string }
  | { event: "wakeup.restored"; workerId: string };

export type WorkerEventListener = (event: WorkerEvent) => void;

/** What a handler may write while it runs. */
export interface JobLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}
