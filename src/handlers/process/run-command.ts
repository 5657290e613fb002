import { OracleError } from "../../core/errors.js";
import { BoundedBytes } from "./bytes.js";
import { Child, type Ending } from "./child.js";
import { findProgram } from "./command.js";
import { describe } from "./ending.js";
import type { ProcessGroups } from "./group.js";
import { findTools, withLimits } from "./limits.js";
import { onAbort } from "./task.js";

export interface CommandOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  groups: ProcessGroups | undefined;
  /** What it is told on stdin. */
  input?: string | Buffer;
  /** What is kept of stdout and of stderr each. */
  outputBytes: number;
}

/** How a command ended, and what it wrote. */
export interface CommandEnd {
  succeeded: boolean;
  /** Null where it was killed or never began. */
  exitCode: number | null;
  /** "ended with exit code 1" and the like. */
  how: string;
  stdout: Buffer;
  stderr: Buffer;
  /** It wrote more than was kept. */
  cut: boolean;
}

/**
 * Runs a program that knows no protocol to its end, in a process group of its own that ends as a whole. Throws the
 * signal's reason when it was aborted.
 */
export async function runCommand(
  [program, ...args]: readonly [string, ...string[]],
  { cwd, env, signal, groups, input, outputBytes }: CommandOptions,
): Promise<CommandEnd> {
  const tools = await findTools();
  signal.throwIfAborted();
  const file = findProgram(program, cwd);
  if (file === undefined) throw notThere(program);
  const [first, ...rest] = withLimits([file, ...args], { process: {} }, tools);
  const stdout = new BoundedBytes(outputBytes);
  const stderr = new BoundedBytes(outputBytes);
  let cut = false;
  const child = new Child(
    { command: { file: first, args: rest, cwd, env }, outputFd: 1, groups },
    {
      output: (chunk) => {
        if (!stdout.append(chunk)) cut = true;
      },
      outputEnd: () => {},
      log: (chunk) => {
        if (!stderr.append(chunk)) cut = true;
      },
    },
  );
  const deafen = onAbort(signal, () => child.stop());
  child.closeInput(input);
  const ending = await child.ended;
  deafen();
  signal.throwIfAborted();
  return {
    // Half of an output may look like the whole.
    succeeded: ending.code === 0 && ending.whole,
    exitCode: ending.whole ? ending.code : null,
    how: howItEnded(ending),
    stdout: stdout.take(),
    stderr: stderr.take(),
    cut,
  };
}

function howItEnded(ending: Ending): string {
  if (ending.startError) return `could not be started: ${ending.startError.message}`;
  return ending.whole ? describe(ending) : "ended, and its output could not be read to the end";
}

function notThere(program: string): OracleError {
  const message = `The program ${JSON.stringify(program)} is not there or not executable.`;
  return new OracleError("HANDLERS_INVALID", message, { field: "executable" });
}
