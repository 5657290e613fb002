import { hash } from "node:crypto";
import { inspect } from "node:util";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { EffectSpec } from "../core/effect.js";
import { OracleError } from "../core/errors.js";
import type { JobLog } from "../core/events.js";
import type { JsonValue } from "../core/json.js";
import { checkOptionNames, type OptionNames } from "../core/options.js";
import { type Backoff, defaultBackoff } from "../core/retry.js";
import { callerModule } from "./caller.js";
import type { EffectCall, EffectOptions } from "./effects.js";
import { LONGEST_SECONDS } from "./snooze.js";

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
  readonly signal: AbortSignal;
  /** Kept with the attempt: `jobs show` and `jobs tail` read it. */
  readonly log: JobLog;
  /** How far the work is, from 0 to 1; the latest is kept. Never waits for the database. */
  progress(fraction: number, message?: string, details?: JsonValue): void;
  /** Adds to what the attempt has used of models and other services; each tenant's account counts it. */
  usage(used: Usage): void;
  /** Keeps bytes, a stream of them, a text or JSON with the attempt. Resolves when it is durable and recorded. */
  artifact(name: string, content: ArtifactSource, options?: { mediaType?: string }): Promise<ArtifactRef>;
  /** Runs once and is remembered: a later attempt gets the value, as JSON keeps it, without calling `fn`. */
  step<T>(name: string, fn: () => Promise<T> | T): Promise<T>;
  /** A call to the outside: recorded before it is made, so that it is neither made twice nor forgotten. */
  effect<T>(options: EffectOptions<T>, fn: (call: EffectCall) => Promise<T> | T): Promise<T>;
  /** Ends the first phase of a job type with `approve`: resolves once these effects, and no others, may be sent. */
  plan(effects: EffectSpec[]): Promise<void>;
  /** SQL that commits together with the result, as the login of the database's address, or not at all. */
  onCommit(name: string, sql: string, values?: JsonValue[]): void;
  /** Ends this attempt without a fault; the job runs again after so many seconds, at no cost. */
  snooze(seconds: number): never;
}

/** Of what the tokens are, and in which currency the cost, is the same for all handlers or it adds up to nothing. */
export interface Usage {
  tokens?: number;
  cost?: number;
}

/** What an artifact is made of: a string is kept as text, anything else that is not bytes as JSON. */
export type ArtifactSource = JsonValue | Uint8Array | AsyncIterable<Uint8Array>;

/** Where an artifact is found again; fit to be part of a result. */
export interface ArtifactRef {
  artifact_id: string;
  sha256: string;
  size: number;
}

export function isStream(content: ArtifactSource): content is AsyncIterable<Uint8Array> {
  return typeof content === "object" && content !== null && Symbol.asyncIterator in content;
}

/** Who lets a plan pass: a person, or a function that says true to those that need none. */
export type Approve = "person" | ((plan: readonly EffectSpec[]) => boolean | Promise<boolean>);

export type Isolation = "inline" | "thread" | "process";

/** How a handler that is a program of its own is run. */
export interface ProcessOptions {
  /** Program and arguments; never from a job's payload, never through a shell. */
  executable?: [string, ...string[]];
  /** Children kept to serve many jobs, one at a time each. Default 0: one child per attempt. */
  warm?: number;
  /** Names of environment variables it may see, besides PATH, HOME, LANG, LC_ALL, TZ and TMPDIR. */
  env?: string[];
  /** Where relative paths start. Default: the worker's folder, or the manifest's. */
  cwd?: string;
  /** Ends a process that uses more. */
  memoryMb?: number;
  /** Ends a one-shot process that computes longer. */
  cpuSeconds?: number;
}

export interface JobOptions<In extends StandardSchemaV1, Out extends StandardSchemaV1>
  extends ProcessOptions {
  type: string;
  /** Any Standard Schema library. Input that breaks it ends the job at once. */
  input: In;
  /** Output that breaks it ends the job at once. */
  output: Out;
  /** How long one attempt may run. Default 3600. */
  timeoutSeconds?: number;
  /** Default: exponential with full jitter, base 5 s, cap 1 h. */
  backoff?: Partial<Backoff>;
  /** The handler's version, recorded with each attempt. Default: a digest of the handler's own code. */
  version?: string;
  /** Where it runs. Default `inline`, or `process` when there is an executable. */
  isolation?: Isolation;
  /** The handler must `plan` its effects, and this decides whether they may be sent. */
  approve?: Approve;
  /** Left out only where an executable is given. */
  run?(
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
  readonly version: string;
  readonly isolation: Isolation;
  readonly approve: Approve | undefined;
  readonly process: Readonly<ProcessOptions>;
  /** The file that defines it, which another thread or process can load; unknown in a REPL. */
  readonly module: string | undefined;
  run(context: JobContext<never>): unknown;
}

const optionNames: OptionNames<JobOptions<StandardSchemaV1, StandardSchemaV1>> = {
  type: true,
  input: true,
  output: true,
  timeoutSeconds: true,
  backoff: true,
  version: true,
  isolation: true,
  approve: true,
  run: true,
  executable: true,
  warm: true,
  env: true,
  cwd: true,
  memoryMb: true,
  cpuSeconds: true,
};

const marker = Symbol.for("oracle-worker.job");

export function defineJob<In extends StandardSchemaV1, Out extends StandardSchemaV1>(
  options: JobOptions<In, Out>,
): JobDefinition<In, Out> {
  checkOptionNames("defineJob", options, optionNames);
  check(options);
  const {
    type,
    input,
    output,
    timeoutSeconds = 3600,
    executable,
    warm,
    env,
    cwd,
    memoryMb,
    cpuSeconds,
  } = options;
  const run =
    options.run ??
    (() => {
      throw new OracleError("HANDLERS_INVALID", `Job type ${type} is an executable; it cannot run inline.`);
    });
  return Object.freeze({
    [marker]: true,
    type,
    input,
    output,
    timeoutSeconds,
    backoff: { ...defaultBackoff, ...options.backoff },
    version: options.version ?? digest(executable ? executable.join("\0") : String(run)),
    isolation: options.isolation ?? (executable ? "process" : "inline"),
    approve: options.approve,
    process: Object.freeze(given({ executable, warm, env, cwd, memoryMb, cpuSeconds })),
    module: executable ? undefined : callerModule(import.meta.url),
    run: run as JobDefinition["run"],
  });
}

/** Recognises a definition also when it was made by another copy of this package. */
export function isJobDefinition(value: unknown): value is JobDefinition {
  return typeof value === "object" && value !== null && marker in value;
}

/** What stands for a version that nobody declared. */
export function digest(text: string | Buffer): string {
  return hash("sha256", text).slice(0, 12);
}

function check(options: JobOptions<StandardSchemaV1, StandardSchemaV1>): void {
  const {
    type,
    timeoutSeconds = 3600,
    version,
    isolation,
    executable,
    warm = 0,
    env = [],
    memoryMb,
    cpuSeconds,
    backoff = {},
  } = options;
  const names = (value: unknown) =>
    Array.isArray(value) && value.every((part) => typeof part === "string" && part !== "");
  const whole = (value: unknown, least: number, most: number) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
  const shorter = (value: unknown) => typeof value === "string" && value.length >= 1 && value.length <= 200;
  const rules: [string, unknown, boolean, string][] = [
    ["type", type, shorter(type), "a name of 1 to 200 characters"],
    [
      "timeoutSeconds",
      timeoutSeconds,
      whole(timeoutSeconds, 1, 604_800),
      "a whole number of seconds from 1 to 604800",
    ],
    ["version", version, version === undefined || shorter(version), "a text of 1 to 200 characters"],
    ...(["input", "output"] as const).map((part): [string, unknown, boolean, string] => [
      part,
      options[part],
      typeof options[part]?.["~standard"]?.validate === "function",
      "a schema of zod, valibot, arktype or another Standard Schema library",
    ]),
    [
      "isolation",
      isolation,
      [undefined, "process", ...(executable ? [] : ["inline", "thread"])].includes(isolation),
      executable ? "process, because it has an executable" : "inline, thread or process",
    ],
    [
      "executable",
      executable,
      executable === undefined || (names(executable) && executable.length > 0),
      "a list: program, then arguments",
    ],
    [
      "run",
      options.run,
      executable ? options.run === undefined : typeof options.run === "function",
      executable ? "left out where there is an executable" : "a function",
    ],
    [
      "backoff",
      backoff,
      isBackoff(backoff),
      "made of kind (exponential, linear or fixed), baseSeconds and capSeconds",
    ],
    [
      "approve",
      options.approve,
      [undefined, "person"].includes(options.approve as string) || typeof options.approve === "function",
      '"person" or a function',
    ],
    ["warm", warm, whole(warm, 0, 256), "a whole number from 0 to 256"],
    ["env", env, names(env), "a list of names of environment variables"],
    [
      "memoryMb",
      memoryMb,
      memoryMb === undefined || whole(memoryMb, 16, 1_048_576),
      "a whole number of megabytes from 16",
    ],
    [
      "cpuSeconds",
      cpuSeconds,
      cpuSeconds === undefined || whole(cpuSeconds, 1, 604_800),
      "a whole number of seconds from 1",
    ],
  ];
  for (const [field, value, right, rule] of rules) {
    if (!right)
      throw new OracleError(
        "INVALID_ARGUMENT",
        `defineJob: ${field} is ${inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY })}; it must be ${rule}.`,
        { field },
      );
  }
}

function isBackoff(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).every(([key, part]) =>
    key === "kind"
      ? ["exponential", "linear", "fixed"].includes(part)
      : ["baseSeconds", "capSeconds"].includes(key) && part >= 0 && part <= LONGEST_SECONDS,
  );
}

/** Without the keys that were left out. */
function given<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}
