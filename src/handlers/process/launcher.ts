import { OracleError } from "../../core/errors.js";
import type { JobDefinition } from "../define.js";
import { Child, type Ears, MODULE_OUTPUT_FD } from "./child.js";
import { nameOf, prepareCommand } from "./command.js";
import type { ProcessGroups } from "./group.js";
import { type Tools, withLimits } from "./limits.js";
import { MemoryWatch } from "./memory-watch.js";

/** Starts the children of one worker and knows those that live. */
export class Launcher {
  private readonly live = new Set<Child>();
  private readonly memory = new MemoryWatch();
  private closed = false;

  constructor(
    private readonly tools: Tools,
    private readonly groups: ProcessGroups | undefined,
  ) {}

  /** Throws when the program is not there or the system cannot start it. */
  start(definition: JobDefinition, ears: Ears): Child {
    if (this.closed)
      throw new OracleError("SHUTDOWN", "The worker is stopping; it starts no more processes.");
    const { file, args, cwd, env } = prepareCommand(definition);
    const [first, ...rest] = withLimits([file, ...args], definition, this.tools);
    const child = new Child(
      {
        command: { file: first, args: rest, cwd, env },
        outputFd: definition.process.executable ? 1 : MODULE_OUTPUT_FD,
        groups: this.groups,
      },
      ears,
    );
    this.live.add(child);
    void child.ended.then(() => this.live.delete(child));
    return child;
  }

  /** Kills the child when it holds more than its limit; until the returned function is called. */
  watchMemory(child: Child, definition: JobDefinition): () => void {
    const { memoryMb } = definition.process;
    if (memoryMb === undefined || child.pid === undefined) return () => {};
    return this.memory.watch(child.pid, memoryMb * 1024, (usedKb) => {
      const used = `${Math.round(usedKb / 1024)} MB`;
      const says = `${nameOf(definition)} held ${used} of memory; its limit is ${memoryMb} MB.`;
      child.fail(new OracleError("MEMORY_LIMIT", says));
    });
  }

  /** Ends every child; resolves when none is left. */
  async close(): Promise<void> {
    this.closed = true;
    const ends = [...this.live].map((child) => child.ended);
    for (const child of this.live) child.end();
    await Promise.all(ends);
  }
}
