import type { Lease } from "../core/job.js";
import type { JobDefinition } from "./define.js";
import { inlineRunner } from "./inline.js";
import type { Runner } from "./runner.js";
import { ThreadRunner } from "./thread.js";

/** The runners of one worker, and which of them an attempt gets. */
export class Runners {
  private readonly thread = new ThreadRunner();

  choose(definition: JobDefinition, _lease: Lease): Runner {
    return definition.isolation === "thread" ? this.thread : inlineRunner;
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}
