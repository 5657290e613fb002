import { z } from "zod";
import { jobStates } from "../../core/states.js";
import {
  counted,
  cursor,
  json,
  limit,
  moment,
  name,
  page,
  problem,
  storedError,
  tenantQuery,
  uuid,
} from "./common.js";
import { progress } from "./records.js";

export const state = z.enum(jobStates);

/** A job as lists show it: everything but its input. */
export const job = z.object({
  job_id: uuid,
  tenant_id: z.string(),
  type: z.string(),
  state,
  queue: z.string(),
  priority: z.int(),
  idempotency_key: z.string(),
  spec_hash: z.string(),
  attempt_count: z.int(),
  max_attempts: z.int(),
  interruptions: z.int(),
  timeout_seconds: z.int().nullable(),
  run_after: moment,
  deadline: moment.nullable(),
  created_at: moment,
  updated_at: moment,
  started_at: moment.nullable(),
  completed_at: moment.nullable(),
  lease_expires_at: moment.nullable(),
  cancel_requested_at: moment.nullable(),
  current_attempt_id: uuid.nullable(),
  worker_id: z.string().nullable(),
  hold_reason: z.string().nullable(),
  replay_of: uuid.nullable(),
  handler_version: z.string().nullable(),
  concurrency_key: z.string().nullable(),
  concurrency_limit: z.int().nullable(),
  error: storedError.nullable().describe("the last attempt's; null once the job succeeded"),
});

/** `progress` is the current attempt's. */
export const jobWithInput = job.extend({ input: json, progress: progress.nullable() });

const submission = {
  type: name,
  input: json,
  queue: name.optional(),
  priority: z.int().min(-1_000_000).max(1_000_000).optional(),
  run_after: moment.optional(),
  deadline: moment.optional(),
  max_attempts: z.int().min(1).max(1000).optional(),
  timeout_seconds: z.int().min(1).max(604_800).optional(),
  dedupe: z.enum(["active", "result"]).optional(),
  version: name.optional().describe("a handler version to pin"),
  concurrency_key: name.optional().describe("jobs with the same key run at most concurrency_limit at a time"),
  concurrency_limit: z.int().min(1).max(10_000).optional().describe("1 where it is left out"),
};

/** The body of an enqueue. Its key, if any, is in the header `Idempotency-Key`. */
export const newJob = z.strictObject(submission);

/** One line of a bulk enqueue. */
export const bulkLine = z.strictObject({ ...submission, key: z.string().min(1).max(1000).optional() });

export const enqueued = z.object({
  job_id: uuid,
  tenant_id: z.string(),
  type: z.string(),
  state,
  created: z.boolean().describe("false: the job was there already"),
  joined: z.enum(["key", "active", "result"]).nullable().describe("how an existing job was found"),
});

/** One answer per line of a bulk enqueue; the last line of the stream has neither `line` nor job. */
export const bulkAnswer = z.union([
  z.object({ line: z.int(), job_id: uuid, created: z.boolean() }),
  z.object({ line: z.int(), error: problem.shape.error }),
  z.object({
    done: z.boolean().describe("false: the stream broke off; what `stored` counts is stored"),
    lines: z.int(),
    stored: z.int(),
    joined: z.int(),
    failed: z.int(),
    error: problem.shape.error.optional().describe("why it broke off"),
  }),
]);

/** Filters that lists and bulk commands share. */
const filters = {
  state: state.optional(),
  type: name.optional(),
  queue: name.optional(),
  held: z.boolean().optional().describe("true: only jobs that wait for a person"),
  text: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^\0]*$/)
    .optional()
    .describe("a job id, an idempotency key or the beginning of one, a type, or words of an error"),
  spec_hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  created_after: moment.optional(),
  created_before: moment.optional(),
};

export const jobQuery = z.strictObject({ ...filters, ...tenantQuery, cursor: cursor.optional(), limit });

/**
 * Newest first. A page may be short although `next` is set: the search stops when it has looked at enough
 * rows, and `searched_until` says how far back it came.
 */
export const jobPage = page(job).extend({ searched_until: moment.nullable() });

/**
 * Which jobs a bulk command means: `ids`, or a filter with at least `state` or `held`. With `dry_run` it only counts;
 * otherwise it changes up to a thousand, and `next` continues where it stopped.
 */
export const bulkChange = z.strictObject({
  ...filters,
  ids: z.array(uuid).min(1).max(1000).optional(),
  dry_run: z.boolean().default(false),
  cursor: cursor.optional(),
});

export const bulkChanged = z.object({
  matched: counted.describe("with dry_run all that match, otherwise those this call looked at"),
  changed: z.int(),
  next: z.string().nullable(),
});

export const replay = z.strictObject({
  input: json.optional(),
  from_step: name.optional().describe("reuse the steps before this one"),
});
