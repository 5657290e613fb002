import type { JobContext, JobDefinition } from "./define.js";
import type { Run, Runner } from "./runner.js";
import { asOwner } from "./stray.js";
import { validate } from "./validate.js";

type FunctionRun = Pick<Run, "definition" | "context">;

/**
 * The pipeline of a handler that is a function: check the input, run, check the output. It gives a promise only if
 * one of them does: more promises would be a good part of a short job.
 */
export function runFunction(run: FunctionRun): unknown {
  const input = validate(run.definition.input, run.context.input, "INPUT_INVALID");
  return input instanceof Promise ? input.then((checked) => runWith(run, checked)) : runWith(run, input);
}

function runWith({ definition, context }: FunctionRun, input: unknown): unknown {
  context.input = input;
  const returned = definition.run(context as JobContext<never>);
  return isThenable(returned) ? later(definition, returned) : checkOutput(definition, returned);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

async function later(definition: JobDefinition, returned: PromiseLike<unknown>): Promise<unknown> {
  return checkOutput(definition, await returned);
}

function checkOutput({ output }: JobDefinition, returned: unknown): unknown {
  return validate(output, returned, "OUTPUT_INVALID");
}

/** Runs handlers in this process. Only their own code can end them. */
export const inlineRunner: Runner = {
  run: (run) => asOwner(runFunction, run),
  close: async () => {},
};
