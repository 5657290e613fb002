import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "../core/errors.js";
import type { JobLog } from "../core/events.js";
import { type Backoff, defaultBackoff } from "../core/retry.js";

/** What a handler may use while it runs. */
export interface JobContext<Input> {
  input: Input;
  job: {
    id: string;
    type: string;
    tenantId: string;
    queue: string;
    idempotencyKey: string;
    attemptId: string;
    attemptNo: number;
    deadline: Date | null;
  };
  /** Aborted on timeout, cancel, loss of the lease and shutdown; its reason says which. */
  signal: AbortSignal;
  log: JobLog;
  /** Ends this attempt without a fault; the job runs again after so many seconds, at no cost. */
  snooze(seconds: number): never;
}

export interface JobOptions<In extends StandardSchemaV1, Out extends StandardSchemaV1> {
  type: string;
  /** Any Standard Schema library. Input that breaks it ends the job at once. */
  input: In;
  /** Output that breaks it ends the job at once. */
  output: Out;
  /** How long one attempt may run. Default 3600. */
  timeoutSeconds?: number;
  /** Default: exponential with full jitter, base 5 s, cap 1 h. */
  backoff?: Partial<Backoff>;
  /** The handler's version. */
  version?: string;
  run(
    context: JobContext<StandardSchemaV1.InferOutput<In>>,
  ): Promise<StandardSchemaV1.InferInput<Out>> | StandardSchemaV1.InferInput<Out>;
}

/** A job type: what goes in, what comes out, and what happens between. */
export interface JobDefinition<
  In extends StandardSchemaV1 = StandardSchemaV1,
  Out extends StandardSchemaV1 = StandardSchemaV1,
> {
  readonly type: string;
  readonly input: In;
  readonly output: Out;
  readonly timeoutSeconds: number;
  readonly backoff: Backoff;
  readonly version: string | undefined;
  run(context: JobContext<never>): unknown;
}

const marker = Symbol.for("oracle-worker.job");

export function defineJob<In extends StandardSchemaV1, Out extends StandardSchemaV1>(
  options: JobOptions<In, Out>,
): JobDefinition<In, Out> {
  const { type, timeoutSeconds = 3600, version } = options;
  if (typeof type !== "string" || type.length < 1 || type.length > 200) {
    throw wrong("type", "a name of 1 to 200 characters", type);
  }
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > 604_800) {
    throw wrong("timeoutSeconds", "a whole number of seconds from 1 to 604800", timeoutSeconds);
  }
  for (const part of ["input", "output"] as const) {
    if (typeof options[part]?.["~standard"]?.validate !== "function") {
      throw wrong(
        part,
        "a schema of zod, valibot, arktype or another Standard Schema library",
        options[part],
      );
    }
  }
  if (typeof options.run !== "function") throw wrong("run", "a function", options.run);
  return Object.freeze({
    [marker]: true,
    type,
    input: options.input,
    output: options.output,
    timeoutSeconds,
    backoff: { ...defaultBackoff, ...options.backoff },
    version,
    run: options.run as JobDefinition["run"],
  });
}

/** Recognises a definition also when it was made by another copy of this package. */
export function isJobDefinition(value: unknown): value is JobDefinition {
  return typeof value === "object" && value !== null && marker in value;
}

function wrong(field: string, right: string, value: unknown): OracleError {
  return new OracleError(
    "INVALID_ARGUMENT",
    `defineJob: ${field} is ${String(value)}; it must be ${right}.`,
    {
      field,
    },
  );
}
