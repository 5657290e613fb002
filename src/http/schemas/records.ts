import { z } from "zod";
import { attemptStatuses } from "../../core/states.js";
import {
  cursor,
  json,
  limit,
  moment,
  page,
  sha256,
  storedError,
  tenantQuery,
  uuid,
  whole,
} from "./common.js";

/** What a running attempt last reported. */
export const progress = z.object({
  attempt_no: z.int(),
  at: moment,
  fraction: z.number().describe("from 0 to 1"),
  message: z.string().nullable(),
  details: json,
});

export const attempt = z.object({
  attempt_id: uuid,
  attempt_no: z.int(),
  status: z.enum(attemptStatuses),
  worker_id: z.string(),
  handler_version: z.string().nullable(),
  cause: z.string().nullable(),
  error: storedError.nullable(),
  started_at: moment,
  ended_at: moment.nullable(),
  late_output: json.describe("what an attempt brought that had lost its lease; null for others"),
  progress: progress.nullable().describe("its latest word on how far it is"),
  tokens: z.number().nullable().describe("what it said it used of models and other services"),
  cost: z.number().nullable(),
});
export const attempts = whole(attempt);

export const result = z.object({
  job_id: uuid,
  attempt_id: uuid,
  result: json,
  content_hash: z.string(),
  provenance_hash: z.string().nullable(),
  result_schema_version: z.int(),
  created_at: moment,
});

/** Hashes computed anew from what is stored. */
export const verification = z.object({
  job_id: uuid,
  verified: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), stored: z.string(), computed: z.string(), matches: z.boolean() }),
  ),
});

/** Attempt and number together order a job's lines. */
export const logLine = z.object({
  attempt_no: z.int(),
  seq: z.int(),
  at: moment,
  level: z.enum(["info", "warn", "error"]),
  message: z.string(),
  fields: json,
});
export const logQuery = z.strictObject({
  attempt: z.int().min(1).max(2_147_483_647).optional(),
  cursor: cursor.optional(),
  limit: z.int().min(1).max(1000).default(200),
});
export const logs = page(logLine);

export const step = z.object({
  name: z.string(),
  seq: z.int(),
  attempt_no: z.int().describe("0: taken over from the job that this one replays"),
  value: json.describe("null where it is kept as an artifact"),
  value_hash: sha256,
  artifact_id: uuid.nullable(),
  created_at: moment,
});
export const steps = whole(step);

export const effectStates = ["PLANNED", "DISPATCHED", "CONFIRMED", "FAILED", "IN_DOUBT"] as const;
export const effectKinds = ["database", "idempotent", "reconcilable", "unsafe"] as const;

export const effect = z.object({
  effect_id: uuid,
  job_id: uuid,
  tenant_id: z.string(),
  name: z.string(),
  kind: z.enum(effectKinds).describe("database: committed together with the result"),
  state: z.enum(effectStates),
  idempotency_key: z.string().describe("what the other side was given"),
  request: json,
  request_hash: sha256,
  response: json.describe("null until it is CONFIRMED"),
  response_hash: sha256.nullable(),
  error: storedError.nullable(),
  attempt_no: z.int().describe("of the attempt that planned it or sent it last"),
  dispatches: z.int(),
  planned_at: moment,
  approved_at: moment.nullable(),
  dispatched_at: moment.nullable(),
  settled_at: moment.nullable(),
  in_doubt_at: moment.nullable(),
  approved_by: z.string().nullable(),
  resolved_by: z.string().nullable(),
  evidence: z.string().nullable().describe("how the person who resolved it knew"),
});
export const effects = whole(effect);
export const effectQuery = z.strictObject({
  state: z.enum(effectStates).optional(),
  ...tenantQuery,
  cursor: cursor.optional(),
  limit,
});
export const effectPage = page(effect);

export const resolve = z.strictObject({
  outcome: z
    .enum(["confirmed", "failed", "retry"])
    .describe("it happened; it did not and the job fails with it; it did not and may be sent again"),
  evidence: z.string().min(1).max(2000).describe("how you know"),
  response: json.optional().describe("with confirmed: what the handler shall get"),
});

export const reject = z.strictObject({ why: z.string().min(1).max(2000) });

export const artifact = z.object({
  artifact_id: uuid,
  attempt_no: z.int(),
  name: z.string(),
  type: z.enum(["json", "text", "bytes"]),
  media_type: z.string(),
  sha256,
  size: z.int(),
  created_at: moment,
});
export const artifacts = whole(artifact);
