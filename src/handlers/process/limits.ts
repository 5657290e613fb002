import { execFile } from "node:child_process";
import type { JobDefinition } from "../define.js";
import { findProgram } from "./command.js";

/** The programs of util-linux that set what Node cannot; absent where the machine lacks them. */
export interface Tools {
  setpriv: string | undefined;
  prlimit: string | undefined;
}

let found: Promise<Tools> | undefined;

/** Looks once. Other programs of the same names lack the options, so each is tried. */
export function findTools(): Promise<Tools> {
  found ??= (async () => {
    const [setpriv, prlimit] = await Promise.all([
      tried("setpriv", ["--pdeathsig", "KILL", "--", "true"]),
      tried("prlimit", ["--version"]),
    ]);
    return { setpriv, prlimit };
  })();
  return found;
}

function tried(name: string, args: string[]): Promise<string | undefined> {
  const file = process.platform === "linux" ? findProgram(name, "/") : undefined;
  if (file === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => execFile(file, args, (error) => resolve(error ? undefined : file)));
}

const MEGABYTE = 1_048_576;

/** The command inside what limits it. Each of them becomes the next: the process stays one. */
export function withLimits(
  [file, ...args]: [string, ...string[]],
  { process: { memoryMb, cpuSeconds, warm = 0 } }: Pick<JobDefinition, "process">,
  { setpriv, prlimit }: Tools,
): [string, ...string[]] {
  const limits: string[] = [];
  // A wall for what allocates faster than its memory is watched. It stands well above the limit, for it counts what
  // is only reserved as well: the stacks of threads, the heaps of runtimes.
  if (memoryMb !== undefined) limits.push(`--data=${(2 * memoryMb + 64) * MEGABYTE}`);
  // The first number brings XCPU, the second KILL. A warm child's time adds up over its jobs: no limit for it.
  if (cpuSeconds !== undefined && warm === 0) limits.push(`--cpu=${cpuSeconds}:${cpuSeconds + 1}`);
  const command: [string, ...string[]] = [file, ...args];
  if (prlimit !== undefined && limits.length > 0) command.unshift(prlimit, ...limits, "--");
  if (setpriv !== undefined) command.unshift(setpriv, "--pdeathsig", "KILL", "--");
  return command;
}
