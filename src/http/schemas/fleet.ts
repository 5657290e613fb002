import { z } from "zod";
import { counted, moment, name, role, tenantQuery, uuid, whole } from "./common.js";

export const queue = z.object({
  queue: z.string(),
  paused: z.boolean(),
  ageing_seconds: z.number().nullable(),
  ready: counted,
  running: z.int(),
  oldest_ready_at: moment.nullable(),
});
export const queues = whole(queue);

export const worker = z.object({
  worker_id: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  alive: z.boolean(),
  draining: z.boolean(),
  concurrency: z.int(),
  running: z.int(),
  queues: z.array(z.string()),
  types: z.array(z.string()),
  started_at: moment,
  seen_at: moment,
});
export const workers = whole(worker);

/** So many in so many seconds. */
const rate = z.strictObject({ count: z.int().min(1).max(1_000_000), seconds: z.int().min(1).max(86_400) });

/** What a tenant may do; null is no limit. */
const tenantLimits = z.strictObject({
  weight: z.int().min(1).max(1000).describe("its share of a queue against the others'"),
  max_running: z.int().min(0).max(1_000_000).nullable(),
  max_waiting: z.int().min(0).max(1_000_000).nullable().describe("beyond them submissions are refused"),
  start_rate: rate.nullable().describe("jobs beyond it wait"),
  enqueue_rate: rate.nullable().describe("submissions beyond it are refused"),
  retention_seconds: z.number().min(1).max(3_155_760_000).nullable().describe("null: as long as everybody's"),
});

/** A tenant's limits, what waits and runs now, and what it has used in the last day. */
export const tenant = tenantLimits.extend({
  tenant_id: z.string(),
  created_at: moment.nullable().describe("null: it has no settings of its own"),
  waiting: z.int(),
  running: z.int(),
  jobs: z.int(),
  succeeded: z.int(),
  attempts: z.int(),
  run_seconds: z.number(),
  tokens: z.number(),
  cost: z.number(),
  bytes: z.int(),
});
export const tenants = whole(tenant);
export const tenantChange = tenantLimits.partial();
export const newTenant = tenantChange.extend({ tenant_id: name });

/** A token without its secret, which is shown once, when it is made. */
export const token = z.object({
  token_id: uuid,
  tenant_id: z.string().nullable().describe("null: all tenants"),
  role,
  name: z.string().nullable(),
  created_at: moment,
  last_used_at: moment.nullable(),
  revoked_at: moment.nullable(),
});
export const tokens = whole(token);
export const tokenQuery = z.strictObject(tenantQuery);
export const newToken = z.strictObject({
  tenant_id: name.nullable(),
  role,
  name: name.optional(),
});
export const mintedToken = token.extend({ token: z.string() });

export const session = z.object({
  role,
  tenant_id: z.string().nullable().describe("null: all tenants"),
  via: z.enum(["bearer", "cookie"]),
  dev: z.boolean().describe("served by `dev`: the crash button works"),
  version: z.string(),
});

/** A token, or the one-time code of a login address; either becomes a cookie. */
export const login = z.union([
  z.strictObject({ token: z.string().min(1).max(500) }),
  z.strictObject({ code: z.string().min(1).max(200) }),
]);

export const setting = z.object({
  name: z.string(),
  about: z.string(),
  value: z.string().nullable().describe("as text; passwords are left out"),
  is_default: z.boolean(),
});
export const settings = whole(setting);

export const crashed = z.object({ pid: z.int(), worker_id: z.string(), job_id: uuid.nullable() });
