import type { Run } from "../runner.js";

/** One attempt as a child sees it. */
export interface Task extends Run {
  /** The request envelope as JSON. */
  request: string;
}

/** Acts when the signal aborts, at once if it has. Returns how to stop waiting for it. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act, { once: true });
  return () => signal.removeEventListener("abort", act);
}
