import { z } from "zod";
import { jobWithInput, state } from "./jobs.js";
import { attempt, logLine, progress, result } from "./records.js";

/** What `GET /jobs/:id/events` sends: the name of each event and the JSON of its `data`. */
export const jobEvents = {
  /** The job's row changed. The first event of a stream is one of these. */
  state: jobWithInput,
  /** An attempt began or ended. */
  attempt,
  /** A new attempt runs: progress and logs shown so far belong to the one before. */
  reset: z.object({ attempt_no: z.int() }),
  progress,
  log: logLine,
  result,
  /** The job is finished and everything has been sent; the server closes the stream. */
  end: z.object({ state }),
} as const;
