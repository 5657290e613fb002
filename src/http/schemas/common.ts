import { z } from "zod";
import type { JsonValue } from "../../core/json.js";

/** Any JSON; the server has checked that it survives storage. Typed, but without a schema of its own. */
export const json = z.unknown() as z.ZodType<JsonValue>;

/** A moment in ISO 8601. */
export const moment = z.iso.datetime({ offset: true });

export const uuid = z
  .string()
  .regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/)
  .describe("a UUID");

export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** A queue, type, tenant or version. NUL has no place in a text of Postgres. */
export const name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\0]*$/);

/** An answer in pages: `next` is the cursor of the following page, null at the end. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next: z.string().nullable() });

/** Lists that are short by nature come whole, in the same shape. */
export const whole = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next: z.null() });

export const cursor = z.string().min(1).max(500).describe("the `next` of the page before");

export const limit = z.int().min(1).max(500).default(50);

/** Counting stops where it would take long: `more` says that there are at least so many. */
export const counted = z.object({ count: z.int(), more: z.boolean() });

export const roles = ["viewer", "operator", "admin"] as const;
export const role = z.enum(roles).describe("viewer looks, operator steers jobs, admin changes tenants");

/** Left out where a token is bound to one tenant. */
export const tenantQuery = { tenant: name.optional().describe("for tokens that see all tenants") };

/** How an attempt or a job failed. */
export const storedError = z.object({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  name: z.string().optional(),
  stack: z.string().optional(),
  field: z.string().optional(),
});

/** Every refusal, as application/problem+json. */
export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  error: z.object({
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    job_id: z.string().optional(),
    retry_after_seconds: z.number().optional(),
  }),
});
