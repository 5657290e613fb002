import { z } from "zod";
import { counted, moment, tenantQuery } from "./common.js";

/** Seconds; null where nothing happened. */
const percentiles = z
  .object({
    p50: z.number(),
    p90: z.number(),
    p99: z.number(),
    of: z.int().describe("how many were looked at"),
  })
  .nullable();

const bucket = z.object({
  at: moment.describe("when the bucket begins"),
  succeeded: z.int(),
  failed: z.int().describe("attempts that failed, by whatever cause"),
  failures: z.record(z.string(), z.int()).describe("the same, by error code"),
  wait: percentiles.describe("from due to started"),
  run: percentiles.describe("from started to ended"),
});

export const statsQuery = z.strictObject({
  ...tenantQuery,
  window: z.enum(["5m", "15m", "1h", "6h", "24h"]).default("1h"),
});

export const stats = z.object({
  at: moment,
  window_seconds: z.int(),
  bucket_seconds: z.int(),
  waiting: z.object({
    ready: counted,
    delayed: counted,
    held: counted,
    running: z.int(),
    oldest_ready_at: moment.nullable(),
  }),
  /** Oldest first; one more than the window has, because the last one is still filling. */
  buckets: z.array(bucket),
  wait: percentiles,
  run: percentiles,
  workers: z.object({ alive: z.int(), draining: z.int(), concurrency: z.int() }),
  /** What waits for a person. */
  attention: z.object({
    held: counted,
    effects_in_doubt: counted,
    dead_letters: counted.describe("FAILED_TERMINAL"),
    unserved_types: z.array(z.object({ type: z.string(), waiting: counted })),
  }),
});
