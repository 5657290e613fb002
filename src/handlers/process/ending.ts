import { constants } from "node:os";
import { OracleError } from "../../core/errors.js";
import type { JobDefinition } from "../define.js";
import type { AttemptLog } from "./attempt-log.js";
import type { Ending } from "./child.js";
import { nameOf } from "./command.js";

/** Why there is no answer of any use, judged by how the process ended and by its last words. */
export function endedWithoutAnswer(
  definition: JobDefinition,
  ending: Ending,
  log: AttemptLog | undefined,
  /** What is wrong with the answer that there was. */
  fault?: Error,
): OracleError {
  const { cpuSeconds, memoryMb } = definition.process;
  const name = nameOf(definition);
  if (ending.startError) {
    return new OracleError("HANDLER_EXITED", `${name} could not be started: ${ending.startError.message}.`);
  }
  if (ranOutOfCpu(definition, ending)) {
    return new OracleError("CPU_LIMIT", `${name} computed longer than its limit of ${cpuSeconds} s.`);
  }
  const words = log?.lastLines() ?? "";
  if (memoryMb !== undefined && outOfMemory.test(words)) {
    const says = `${name} ran out of memory under its limit of ${memoryMb} MB`;
    return new OracleError("MEMORY_LIMIT", withLastWord(says, words));
  }
  const answer = fault
    ? `with an answer of no use (${fault.message.replace(/\.$/, "")})`
    : "without an answer";
  const says = `${name} ${describe(ending)} ${answer}`;
  const error = new OracleError("HANDLER_EXITED", withLastWord(says, words));
  // The program's own stack, as it printed it; ours is nobody's help.
  error.stack = words || error.message;
  return error;
}

/** "ended with exit code 1" and the like. */
export function describe({ code, signal }: Ending): string {
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}

/** What runtimes say when they are refused memory. Nothing else tells: the kernel only refuses. */
const outOfMemory =
  /out of memory|OutOfMemory|MemoryError|bad_alloc|cannot allocate memory|memory allocation of|allocation failed/i;

/** A shell tells its own child's signal as an exit code. */
const SHELL_SIGNAL_BASE = 128;

export function ranOutOfCpu({ process }: JobDefinition, { code, signal, ranSeconds }: Ending): boolean {
  const { cpuSeconds, warm = 0 } = process;
  if (cpuSeconds === undefined || warm > 0) return false;
  if (signal === "SIGXCPU" || code === SHELL_SIGNAL_BASE + (constants.signals.SIGXCPU ?? 0)) return true;
  // One that ignores the warning is killed a second later.
  return signal === "SIGKILL" && ranSeconds >= cpuSeconds;
}

const LONGEST_LINE = 300;

/** The line that is the error itself in what Python, Node, Java or Go print. */
const errorLine = /^[\w.]*(?:Error|Exception|panic)\b/;

function withLastWord(says: string, words: string): string {
  const lines = words.split("\n").map((line) => line.trim());
  const word = lines.findLast((line) => errorLine.test(line)) ?? lines.at(-1);
  return word ? `${says}: ${word.slice(0, LONGEST_LINE)}` : `${says}.`;
}
