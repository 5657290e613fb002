import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { ErrorCode, OracleError } from "../core/errors.js";
import type { Lease } from "../core/job.js";
import type { JobDefinition } from "./define.js";
import { inlineRunner } from "./inline.js";
import type { ProcessGroups } from "./process/group.js";
import { ProcessRunner } from "./process/process-runner.js";
import type { Run, Runner } from "./runner.js";
import { ThreadRunner } from "./thread.js";

/** How a job's last attempt ended if it may have taken its process with it: the worker's, or one it had apart. */
const crashes = new Set<ErrorCode>(["WORKER_CRASHED", "LEASE_EXPIRED", "HANDLER_EXITED", "HANDLER_PROTOCOL"]);
/** Jobs of one type that run apart at once; each has a process to itself. */
const APART_AT_ONCE = Math.max(2, 2 * availableParallelism());

/** The runners of one worker, and which of them an attempt gets. */
export class Runners {
  private readonly thread = new ThreadRunner();
  private readonly process: ProcessRunner;
  private readonly apart = new Map<JobDefinition, Runner>();

  constructor(groups?: ProcessGroups) {
    this.process = new ProcessRunner({ groups });
  }

  choose(definition: JobDefinition, { lastError }: Lease): Runner {
    switch (definition.isolation) {
      case "inline":
        return lastError !== null && crashes.has(lastError) ? this.runApart(definition) : inlineRunner;
      case "thread":
        return this.thread;
      case "process":
        return this.process;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.thread.close(), this.process.close()]);
  }

  /** After a crash: in a process of its own, where the next one would hurt no other job. */
  private runApart(definition: JobDefinition): Runner {
    let runner = this.apart.get(definition);
    if (!runner) {
      runner = canLoadElsewhere(definition) ? this.apartRunner(definition) : inlineRunner;
      this.apart.set(definition, runner);
    }
    return runner;
  }

  private apartRunner(definition: JobDefinition): Runner {
    // An inline handler sees this process's whole environment; that must not change with where it runs.
    const options = { warm: APART_AT_ONCE, env: Object.keys(process.env) };
    const elsewhere: JobDefinition = { ...definition, isolation: "process", process: options };
    return {
      run: async (run: Run) => {
        try {
          return await this.process.run({ ...run, definition: elsewhere });
        } catch (error) {
          if ((error as OracleError).code !== "HANDLERS_INVALID") throw error;
          // Its module cannot be loaded on its own, so the handler has not begun: there is only this place.
          this.apart.set(definition, inlineRunner);
          return inlineRunner.run(run);
        }
      },
      close: async () => {},
    };
  }
}

/** To load a program's main module would be to start the program a second time. */
function canLoadElsewhere({ module }: JobDefinition): boolean {
  return module !== undefined && module !== resolve(process.argv[1] ?? "");
}
