import { Gauge, Registry } from "prom-client";

/** Queue depths as a page for Prometheus: the same from whichever process is asked. */
export function queueGauges(
  depths: { queue: string; ready: number; oldestSeconds: number }[],
): Promise<string> {
  const registry = new Registry();
  const gauge = (name: string, help: string) =>
    new Gauge({ name, help, labelNames: ["queue"], registers: [registry] });
  const ready = gauge("oracle_queue_ready_jobs", "Jobs that could start now.");
  const oldest = gauge("oracle_queue_oldest_seconds", "How long the first of them has waited.");
  for (const { queue, ready: count, oldestSeconds } of depths) {
    ready.set({ queue }, count);
    oldest.set({ queue }, oldestSeconds);
  }
  return registry.metrics();
}
