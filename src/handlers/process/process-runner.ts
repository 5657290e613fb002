import { type JsonValue, toJsonText } from "../../core/json.js";
import type { JobDefinition } from "../define.js";
import { toRequest } from "../protocol.js";
import type { Run, Runner } from "../runner.js";
import { validate } from "../validate.js";
import { IDLE_MS } from "./caps.js";
import { speaksLines } from "./command.js";
import type { ProcessGroups } from "./group.js";
import { Launcher } from "./launcher.js";
import { findTools } from "./limits.js";
import { runOneShot } from "./one-shot.js";
import { Pool } from "./pool.js";
import type { Task } from "./task.js";

/** Runs handlers in processes of their own: programs in any language, and modules in another Node. */
export class ProcessRunner implements Runner {
  /** Made for the first job: most workers have none of these. */
  private launcher: Promise<Launcher> | undefined;
  private readonly pools = new Map<JobDefinition, Pool>();
  private readonly idleMs: number;

  private readonly groups: ProcessGroups | undefined;

  constructor({ groups, idleMs = IDLE_MS }: { groups?: ProcessGroups | undefined; idleMs?: number } = {}) {
    this.groups = groups;
    this.idleMs = idleMs;
  }

  async run(run: Run): Promise<unknown> {
    const { lease, definition, clock } = run;
    // A module checks its own side's schemas; nobody else does it for a program.
    const isProgram = definition.process.executable !== undefined;
    const input = isProgram ? await validate(definition.input, lease.input, "INPUT_INVALID") : lease.input;
    this.launcher ??= findTools().then((tools) => new Launcher(tools, this.groups));
    const launcher = await this.launcher;
    if (clock.stopError) throw clock.stopError;
    const envelope = toRequest(lease, input as JsonValue);
    // What came from the store is JSON; what a schema made of it may be anything.
    const request =
      input === lease.input ? JSON.stringify(envelope) : toJsonText(envelope, anySize, "request");
    const task: Task = { ...run, request };
    const result = await (speaksLines(definition)
      ? this.poolOf(definition, launcher).run(task)
      : runOneShot(task, launcher));
    return isProgram ? validate(definition.output, result as JsonValue, "OUTPUT_INVALID") : result;
  }

  async close(): Promise<void> {
    for (const pool of this.pools.values()) pool.close();
    await (await this.launcher)?.close();
  }

  private poolOf(definition: JobDefinition, launcher: Launcher): Pool {
    let pool = this.pools.get(definition);
    if (!pool) {
      pool = new Pool(definition, launcher, this.idleMs);
      this.pools.set(definition, pool);
    }
    return pool;
  }
}

/** The store has bounded the input already. */
const anySize = { maxBytes: Number.MAX_SAFE_INTEGER, maxDepth: 500 };
