import { OracleError } from "../core/errors.js";
import { evolve } from "../evolution/evolve.js";
import type { Coder } from "../evolution/roles.js";
import { createLogger, logEvents } from "../observe/log.js";
import type { Call } from "./command.js";
import { evolvedJson } from "./evolve-json.js";
import { evolvedText, isInVain } from "./evolve-text.js";
import { openView } from "./evolve-view.js";
import { onSignals } from "./supervise.js";

type Words = [string, ...string[]];

export interface EvolveFlags {
  repo: string;
  goal: string;
  evaluate: Words;
  coder?: Words;
  agent?: Words;
  planner?: Words;
  metric?: string;
  generations: number;
  population: number;
  islands?: number;
  base: string;
  target?: number;
  maxJobs?: number;
  experiment?: string;
  branch: string;
  env?: string[];
}

/** As shells have it for a program that Ctrl-C has ended. */
const INTERRUPTED = 130;
const FAILED = 1;

/** Evolves until there is a reason to stop; the first signal lets running jobs finish, the second hands them back. */
export async function runEvolve(call: Call<EvolveFlags>): Promise<void> {
  const { flags, out, settings } = call;
  const { evaluate, planner, ...values } = flags;
  const coder = coderOf(flags);
  const stop = new AbortController();
  const abort = new AbortController();
  const view = openView(out);
  const off = onSignals(() => {
    if (stop.signal.aborted) return abort.abort();
    view.note("stopping: running jobs finish first (again: hand them back)");
    stop.abort();
  });
  const options = {
    ...values,
    coder,
    evaluator: { command: evaluate },
    planner: planner && { executable: planner },
    signal: stop.signal,
    abortSignal: abort.signal,
    onEvent: view.show,
    onWorkerEvent: logEvents(createLogger(settings.LOG_LEVEL === "info" ? "error" : settings.LOG_LEVEL)),
  };
  try {
    const evolved = await call.withOracle((oracle) => evolve(oracle, options), { closeOnSignal: false });
    await out.show(evolvedJson(evolved), () => evolvedText(evolved, flags.repo));
    if (evolved.stopped === "interrupted") process.exitCode = INTERRUPTED;
    else if (isInVain(evolved)) process.exitCode = FAILED;
  } catch (error) {
    if (!(error instanceof OracleError && error.code === "SHUTDOWN")) throw withFlag(error, flags);
    out.note(error.message);
    process.exitCode = INTERRUPTED;
  } finally {
    off();
  }
}

/** The function's options are the command's flags: errors name what was typed. */
function withFlag(error: unknown, { agent }: EvolveFlags): unknown {
  const field = error instanceof OracleError ? error.field : undefined;
  const flag = field === undefined ? undefined : { ...flagOf, ...(agent && { coder: "--agent" }) }[field];
  if (!(error instanceof OracleError) || field === undefined || flag === undefined) return error;
  const message = error.message.replace(new RegExp(`\\b${field}\\b`), flag);
  return new OracleError(error.code, message, { field: flag, cause: error });
}

const flagOf: Record<string, string> = {
  ...Object.fromEntries(
    ["repo", "base", "branch", "metric", "experiment", "population"].map((name) => [name, `--${name}`]),
  ),
  ...{ coder: "--coder", planner: "--planner", evaluator: "--evaluate" },
};

function coderOf({ coder, agent }: EvolveFlags): Coder {
  if (coder && !agent) return { executable: coder };
  if (agent && !coder) return { agent };
  const message = "Who changes the code? Give --coder or --agent, one of them.";
  throw new OracleError("INVALID_ARGUMENT", message, { field: "--coder" });
}
