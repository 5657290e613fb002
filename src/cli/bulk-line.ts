import { OracleError } from "../core/errors.js";
import { type JsonLimits, type JsonValue, parseJsonText } from "../core/json.js";
import type { NewJob } from "../store/new-job.js";
import { type EnqueueOptions, toNewJob } from "../submit.js";
import type { Line } from "./lines.js";
import { parseMoment } from "./parse.js";

/** What lines that do not say otherwise get. */
export interface BulkDefaults {
  type: string | undefined;
  options: EnqueueOptions;
}

/** The fields of a line besides type and input, and the options they are. */
const fields = {
  key: "key",
  queue: "queue",
  priority: "priority",
  run_after: "runAfter",
  deadline: "deadline",
  max_attempts: "maxAttempts",
  timeout_seconds: "timeoutSeconds",
  dedupe: "dedupe",
  tenant: "tenant",
  concurrency_key: "concurrencyKey",
  concurrency_limit: "concurrencyLimit",
} as const satisfies Record<string, keyof EnqueueOptions>;

/** Room for a line's other fields beside the largest input. */
const OTHER_FIELDS_BYTES = 65_536;

export function longestLine(limits: JsonLimits): number {
  return limits.maxBytes + OTHER_FIELDS_BYTES;
}

/** The job of one line; an error names the line and the field. */
export function toBulkJob(line: Line, defaults: BulkDefaults, limits: JsonLimits): NewJob {
  try {
    const wider = { maxBytes: longestLine(limits), maxDepth: limits.maxDepth + 1 };
    const { type, input, ...rest } = checkObject(parseJsonText(line.text, wider, "line"));
    if (input === undefined) throw wrong("input", "input is missing.");
    if (type !== undefined && typeof type !== "string") throw wrong("type", "type must be a text.");
    const jobType = type ?? defaults.type;
    if (jobType === undefined) throw wrong("type", "type is missing, and the command names none either.");
    return toNewJob(jobType, input, { ...defaults.options, ...toOptions(rest) }, limits);
  } catch (error) {
    throw atLine(error, line.number);
  }
}

function checkObject(value: JsonValue): { [key: string]: JsonValue } {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw wrong("$", 'it must be an object such as {"type": "summarize_text", "input": {}}.');
}

/** Values pass unchecked: toNewJob checks what they are. */
function toOptions(given: { [key: string]: JsonValue }): EnqueueOptions {
  const options = Object.entries(given).map(([name, value]) => {
    if (!Object.hasOwn(fields, name)) {
      const known = ["type", "input", ...Object.keys(fields)].join(", ");
      throw wrong(name, `${JSON.stringify(name)} is not a field of a job. Known: ${known}.`);
    }
    const isMoment = name === "run_after" || name === "deadline";
    return [fields[name as keyof typeof fields], isMoment ? parseMoment(name)(String(value)) : value];
  });
  return Object.fromEntries(options);
}

/** The same error, speaking of a line and of the line's own field names. */
export function atLine(error: unknown, line: number): unknown {
  if (!(error instanceof OracleError)) return error;
  const { code, field = "$", jobId, message } = error;
  const [own] = Object.entries(fields).find(([, option]) => option === field) ?? [field];
  // The parser counts lines within the text it was given, which is this one.
  const plain = message.replace("line 1, column", "column");
  const said = own !== field && plain.startsWith(field) ? own + plain.slice(field.length) : plain;
  return new OracleError(code, `Line ${line}: ${said}`, {
    field: `line ${line}: ${own}`,
    ...(jobId === undefined ? {} : { jobId }),
    cause: error,
  });
}

function wrong(field: string, message: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", message, { field });
}
