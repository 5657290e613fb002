import type { Lease } from "../core/job.js";
import type { JobDefinition } from "./define.js";
import { inlineRunner } from "./inline.js";
import type { ProcessGroups } from "./process/group.js";
import { ProcessRunner } from "./process/process-runner.js";
import type { Runner } from "./runner.js";
import { ThreadRunner } from "./thread.js";

/** The runners of one worker, and which of them an attempt gets. */
export class Runners {
  private readonly thread = new ThreadRunner();
  private readonly process: ProcessRunner;

  constructor(groups?: ProcessGroups) {
    this.process = new ProcessRunner({ groups });
  }

  choose(definition: JobDefinition, _lease: Lease): Runner {
    switch (definition.isolation) {
      case "inline":
        return inlineRunner;
      case "thread":
        return this.thread;
      case "process":
        return this.process;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.thread.close(), this.process.close()]);
  }
}
