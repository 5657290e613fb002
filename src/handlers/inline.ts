import type { JobContext } from "./define.js";
import type { Run, Runner } from "./runner.js";
import { asOwner } from "./stray.js";
import { validate } from "./validate.js";

/** The pipeline of a handler that is a function: check the input, run, check the output. */
export async function runFunction({
  definition,
  context,
}: Pick<Run, "definition" | "context">): Promise<unknown> {
  const input = validate(definition.input, context.input, "INPUT_INVALID");
  context.input = input instanceof Promise ? await input : input;
  const returned = await definition.run(context as JobContext<never>);
  return validate(definition.output, returned, "OUTPUT_INVALID");
}

/** Runs handlers in this process. Only their own code can end them. */
export const inlineRunner: Runner = {
  run: (run) => asOwner(() => runFunction(run)),
  close: async () => {},
};
