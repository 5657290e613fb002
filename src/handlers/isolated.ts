import { OracleError } from "../core/errors.js";
import { toJsonText } from "../core/json.js";
import type { JobDefinition } from "./define.js";
import { runFunction } from "./inline.js";
import { loadHandlers } from "./load.js";
import { type RequestEnvelope, toErrorEnvelope } from "./protocol.js";
import type { RemoteContext } from "./remote-context.js";
import { strayEnvelope } from "./stray.js";

// The side of a thread or process that runs one handler of a module: what it needs of this package is here.

const loaded = new Map<string, Promise<JobDefinition[]>>();

/** Runs the module's handler for a request; the response as text. Never throws. */
export async function answer(
  module: string,
  request: RequestEnvelope,
  remote: RemoteContext,
): Promise<string> {
  const { attempt_id, job_type } = request;
  try {
    const definition = await findDefinition(module, job_type);
    const output = await runFunction({ definition, context: remote.context() });
    remote.finish();
    const text = toOutputText(output);
    return `{"attempt_id":${JSON.stringify(attempt_id)},"ok":true,"result":${text}}`;
  } catch (error) {
    return JSON.stringify({ attempt_id, ok: false, error: toErrorEnvelope(ofMemory(error) ?? error) });
  }
}

/** Node says it so when it is refused memory for a buffer, which lies outside its heap. */
function ofMemory(error: unknown): OracleError | undefined {
  if (!(error instanceof RangeError) || error.message !== "Array buffer allocation failed") return undefined;
  return new OracleError("MEMORY_LIMIT", `The handler ran out of memory: ${error.message}.`);
}

/** The response for an attempt that left an error to nobody while it ran. */
export function strayAnswer({ attempt_id }: RequestEnvelope, thrown: unknown): string {
  return JSON.stringify({ attempt_id, ok: false, error: strayEnvelope(thrown) });
}

async function findDefinition(module: string, type: string): Promise<JobDefinition> {
  let loading = loaded.get(module);
  if (!loading) {
    loading = loadHandlers(module);
    loaded.set(module, loading);
  }
  const definition = (await loading).find((each) => each.type === type);
  if (definition) return definition;
  throw new OracleError(
    "HANDLERS_INVALID",
    `${module} does not export job type ${type}: a job that runs in a thread or process must be exported by the module that defines it.`,
  );
}

/** The worker judges the size by its settings; here it must only be JSON. */
const anySize = { maxBytes: Number.POSITIVE_INFINITY, maxDepth: 500 };

function toOutputText(output: unknown): string {
  try {
    return toJsonText(output, anySize, "output");
  } catch (error) {
    const { message, field } = error as OracleError;
    throw new OracleError("OUTPUT_REJECTED", message, field === undefined ? {} : { field });
  }
}
