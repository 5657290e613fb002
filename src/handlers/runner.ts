import type { Lease } from "../core/job.js";
import type { JobContext, JobDefinition } from "./define.js";
import type { Recorder } from "./recorder.js";

/** What an attempt's timeout is measured by, and how it is told to end. */
export interface Clock {
  /** Waits for a place to run, a thread or a process: that time counts for the job's deadline, not for its timeout. */
  waitFor<T>(place: Promise<T>): Promise<T>;
  /** Why it was told to end, if it was. The context's signal says the same, but making one costs as much as a short job. */
  readonly stopError: Error | undefined;
  /** Called when it is told to end. */
  onStop: (() => void) | undefined;
}

/** One attempt as a runner sees it. */
export interface Run {
  lease: Lease;
  definition: JobDefinition;
  /** For a handler in this process; for one elsewhere, what its messages are served with. */
  context: JobContext<unknown>;
  /** Behind the context's steps and effects. */
  recorder: Recorder;
  clock: Clock;
}

/**
 * A place where handlers run. `run` gives the output, checked against the type's schema, or throws what the handler
 * threw; at once or as a promise. When the context's signal aborts, a runner ends the handler by force if it must: it
 * settles its promise only when nothing of the attempt is left running.
 */
export interface Runner {
  run(run: Run): unknown;
  close(): Promise<void>;
}
