import { collectDefaultMetrics, Registry } from "prom-client";
import { type PoolUse, watchPool } from "./pool-gauges.js";

/** What a server process tells of itself, as Prometheus reads it: its pool, its memory, its event loop's lag. */
export function serverMetrics(pool: () => PoolUse): () => Promise<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  watchPool(registry, pool);
  return () => registry.metrics();
}
