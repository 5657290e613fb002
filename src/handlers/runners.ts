import type { Lease } from "../core/job.js";
import type { JobDefinition } from "./define.js";
import { inlineRunner } from "./inline.js";
import type { Runner } from "./runner.js";

/** The runners of one worker, and which of them an attempt gets. */
export class Runners {
  choose(_definition: JobDefinition, _lease: Lease): Runner {
    return inlineRunner;
  }

  async close(): Promise<void> {}
}
