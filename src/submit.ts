import { inspect } from "node:util";
import { OracleError } from "./core/errors.js";
import { specHash } from "./core/hash.js";
import { newId } from "./core/ids.js";
import type { Job } from "./core/job.js";
import { type JsonLimits, type JsonValue, toJsonText } from "./core/json.js";
import { checkOptionNames, type OptionNames } from "./core/options.js";
import { isJobDefinition, type JobDefinition } from "./handlers/define.js";
import type { SqlClient } from "./store/database.js";
import type { NewJob } from "./store/new-job.js";

export interface EnqueueOptions {
  /** Idempotency key, unique within the tenant. Default: the job's own id. */
  key?: string;
  /** Default `default`. */
  queue?: string;
  /** Higher runs first. Default 0. */
  priority?: number;
  /** A moment, or seconds from now by the database's clock. */
  runAfter?: Date | number;
  /** The job fails if it has not finished by then: a moment, or seconds from now by the database's clock. */
  deadline?: Date | number;
  /** Default 3. */
  maxAttempts?: number;
  /** How long one attempt may run. Default: the job type's. */
  timeoutSeconds?: number;
  /** `active` joins an unfinished job with the same type and input, `result` a succeeded one. */
  dedupe?: "active" | "result";
  /** Default `default`. */
  tenant?: string;
  /** A handler version to pin: part of the job's specification. */
  version?: string;
  /** Jobs of the tenant with the same key run at most `concurrencyLimit` at a time. */
  concurrencyKey?: string;
  /** Default 1 where there is a key. */
  concurrencyLimit?: number;
  replayOf?: string;
}

export type SingleOptions = EnqueueOptions & { client?: SqlClient };
export type ManyOptions = Omit<EnqueueOptions, "key"> & { keys?: string[]; client?: SqlClient };

const common: OptionNames<Omit<EnqueueOptions, "key">> = {
  queue: true,
  priority: true,
  runAfter: true,
  deadline: true,
  maxAttempts: true,
  timeoutSeconds: true,
  dedupe: true,
  tenant: true,
  version: true,
  concurrencyKey: true,
  concurrencyLimit: true,
  replayOf: false,
};

const single: OptionNames<SingleOptions> = { key: true, ...common, client: true };
const many: OptionNames<ManyOptions> = { keys: true, ...common, client: true };

export function checkSingle(options: SingleOptions): void {
  checkOptionNames("enqueue", options, single);
}

export function checkMany(inputs: unknown[], options: ManyOptions): void {
  checkOptionNames("enqueueMany", options, many);
  const { keys } = options;
  if (!Array.isArray(inputs)) throw wrong("inputs", inputs, "a list");
  if (keys !== undefined && !Array.isArray(keys)) throw wrong("keys", keys, "a list");
  if (keys && keys.length !== inputs.length) {
    const message = `keys has ${keys.length} entries for ${inputs.length} inputs.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "keys" });
  }
}

/** From the least to the most that each number may be. */
export const submissionBounds = {
  priority: [-1_000_000, 1_000_000],
  maxAttempts: [1, 1000],
  timeoutSeconds: [1, 604_800],
  concurrencyLimit: [1, 10_000],
} as const;

/** The most characters that each name may have. */
export const nameLengths = {
  type: 200,
  queue: 200,
  tenant: 200,
  version: 200,
  concurrencyKey: 200,
  key: 1000,
} as const;

export function typeOf(job: JobDefinition | string): string {
  if (typeof job === "string") return job;
  if (isJobDefinition(job)) return job.type;
  throw wrong("job", job, "a job type's name or a value made with defineJob");
}

/** Checks a submission at the edge and makes the row of it; nothing is stored when this throws. */
export function toNewJob(type: string, input: unknown, options: EnqueueOptions, limits: JsonLimits): NewJob {
  const inputText = toJsonText(input, limits, "input");
  const { dedupe } = options;
  if (dedupe !== undefined && dedupe !== "active" && dedupe !== "result") {
    throw wrong("dedupe", dedupe, "active or result");
  }
  const { concurrencyKey, concurrencyLimit } = checkConcurrency(options);
  return {
    jobId: newId(),
    tenantId: checkName("tenant", options.tenant ?? "default"),
    queue: checkName("queue", options.queue ?? "default"),
    type: checkName("type", type),
    key: options.key === undefined ? undefined : checkName("key", options.key),
    inputText,
    specHash: specHash({ jobType: type, input: input as JsonValue, handlerVersion: options.version }),
    dedupe,
    priority: checkInteger("priority", options.priority ?? 0),
    maxAttempts: checkInteger("maxAttempts", options.maxAttempts ?? 3),
    timeoutSeconds:
      options.timeoutSeconds === undefined
        ? undefined
        : checkInteger("timeoutSeconds", options.timeoutSeconds),
    runAfter: checkMoment("runAfter", options.runAfter),
    deadline: checkMoment("deadline", options.deadline),
    handlerVersion: options.version === undefined ? undefined : checkName("version", options.version),
    concurrencyKey,
    concurrencyLimit,
    replayOf: options.replayOf,
  };
}

/** What a replay has in common with its original, beside type and input. */
export function likeness(old: Job): EnqueueOptions {
  return {
    queue: old.queue,
    priority: old.priority,
    maxAttempts: Math.min(old.maxAttempts, 1000),
    tenant: old.tenantId,
    replayOf: old.jobId,
    ...(old.timeoutSeconds === null ? {} : { timeoutSeconds: old.timeoutSeconds }),
    ...(old.handlerVersion === null ? {} : { version: old.handlerVersion }),
    ...(old.concurrencyKey === null ? {} : { concurrencyKey: old.concurrencyKey }),
    ...(old.concurrencyLimit === null ? {} : { concurrencyLimit: old.concurrencyLimit }),
  };
}

function checkConcurrency({ concurrencyKey, concurrencyLimit }: EnqueueOptions) {
  if (concurrencyKey === undefined && concurrencyLimit === undefined) {
    return { concurrencyKey, concurrencyLimit };
  }
  return {
    concurrencyKey: checkName("concurrencyKey", concurrencyKey),
    concurrencyLimit: checkInteger("concurrencyLimit", concurrencyLimit ?? 1),
  };
}

function checkName(field: keyof typeof nameLengths, value: unknown): string {
  const most = nameLengths[field];
  if (typeof value !== "string" || value.length < 1 || value.length > most) {
    throw wrong(field, value, `a text of 1 to ${most} characters`);
  }
  if (value.includes("\0") || !value.isWellFormed()) {
    throw wrong(field, value, "text without NUL characters and lone surrogates");
  }
  return value;
}

function checkInteger(field: keyof typeof submissionBounds, value: unknown): number {
  const [least, most] = submissionBounds[field];
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw wrong(field, value, `a whole number from ${least} to ${most}`);
}

const TEN_YEARS_SECONDS = 315_360_000;

function checkMoment(field: string, value: Date | number | undefined): Date | number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= 0 && value <= TEN_YEARS_SECONDS) return value;
  if (value instanceof Date) {
    const year = value.getUTCFullYear();
    if (year >= 1 && year < 10_000) return value;
  }
  throw wrong(field, value, "a valid Date of the years 1 to 9999, or seconds from 0 to ten years");
}

function wrong(field: string, value: unknown, right: string): OracleError {
  const shown =
    typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : inspect(value, { depth: 0 });
  return new OracleError("INVALID_ARGUMENT", `${field} is ${shown}; it must be ${right}.`, { field });
}
