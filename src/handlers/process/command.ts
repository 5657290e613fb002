import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { OracleError } from "../../core/errors.js";
import type { JobDefinition, ProcessOptions } from "../define.js";
import { allowedEnvironment, pythonPath } from "../environment.js";

/** What a child is started with: from the definition alone, never from a job. */
export interface Command {
  /** Absolute. */
  file: string;
  args: string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
}

const nodeMain = fileURLToPath(new URL("./node-main.js", import.meta.url));

/** Program and arguments: the executable, or Node with a module that serves the handler's module. */
export function commandOf(definition: JobDefinition): [string, ...string[]] {
  const { type, module, process: options } = definition;
  if (options.executable) return options.executable;
  if (module !== undefined) return [process.execPath, ...heapLimit(options), nodeMain, module];
  throw invalid(
    `Job type ${type} has isolation "process" but was not defined in a file; another process cannot load it.`,
  );
}

/** Without it Node lets garbage pile up past the limit. */
function heapLimit({ memoryMb }: ProcessOptions): string[] {
  return memoryMb === undefined ? [] : [`--max-old-space-size=${memoryMb}`];
}

/** Whether the child speaks JSON lines; otherwise one document in, one out. */
export function speaksLines({ process: { executable, warm = 0 } }: JobDefinition): boolean {
  // Our own side of a module always does: that is how its context reaches the worker.
  return executable === undefined || warm > 0;
}

/** How errors call it. */
export function nameOf({ type, module, process: { executable } }: JobDefinition): string {
  return `The program ${executable?.[0] ?? basename(module ?? "")} of job type ${type}`;
}

/** Throws HANDLERS_INVALID when there is no such program: the next attempt would not find it either. */
export function prepareCommand(definition: JobDefinition): Command {
  const { type, process: options } = definition;
  const [program, ...args] = commandOf(definition);
  const cwd = resolve(options.cwd ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw invalid(`Job type ${type} runs in ${cwd}, which is not a folder.`);
  }
  const file = findProgram(program, cwd);
  if (file === undefined) {
    throw invalid(
      `Job type ${type} runs the program ${JSON.stringify(program)}, which is not there or not executable.`,
    );
  }
  return { file, args, cwd, env: environment(definition) };
}

/** The file a name stands for: a path from the folder, or the first match in PATH. */
export function findProgram(name: string, cwd: string): string | undefined {
  const folders = name.includes("/") ? [cwd] : (process.env.PATH ?? "").split(delimiter);
  return folders
    .map((folder) => (isAbsolute(name) ? name : resolve(cwd, join(folder, name))))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function environment(definition: JobDefinition): NodeJS.ProcessEnv {
  const { executable, warm = 0 } = definition.process;
  return {
    ...allowedEnvironment(definition),
    ...(executable ? { PYTHONPATH: pythonPath() } : {}),
    ...(warm > 0 ? { ORACLE_WORKER_WARM: "1", ORACLE_WORKER_AHEAD: "1" } : {}),
    ...(executable ? {} : { ORACLE_WORKER_ISOLATED: "1" }),
  };
}

function invalid(message: string): OracleError {
  return new OracleError("HANDLERS_INVALID", message, { field: "executable" });
}
