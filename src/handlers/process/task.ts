import type { Lease } from "../../core/job.js";
import type { JobContext, JobDefinition } from "../define.js";

/** One attempt as a child sees it. */
export interface Task {
  definition: JobDefinition;
  context: JobContext<unknown>;
  lease: Lease;
  /** The request envelope as JSON. */
  request: string;
}

/** Acts when the signal aborts, at once if it has. Returns how to stop waiting for it. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act, { once: true });
  return () => signal.removeEventListener("abort", act);
}
