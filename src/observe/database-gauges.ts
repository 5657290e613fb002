import { Gauge, Registry } from "prom-client";

export interface WorkCounts {
  depths: { queue: string; ready: number; oldestSeconds: number }[];
  held: { reason: string; jobs: number }[];
}

/** A scrape more often than this sees the same figures: counting them reads the whole of the ready rows. */
const COUNT_MS = 10_000;

/** What waits, as a page for Prometheus: the same from whichever process is asked. Empty while nobody can count. */
export function databaseGauges(count: () => Promise<WorkCounts>): () => Promise<string> {
  let counted = Number.NEGATIVE_INFINITY;
  let page = Promise.resolve("");
  return () => {
    if (performance.now() - counted > COUNT_MS) {
      counted = performance.now();
      page = count().then(toPage, () => "");
    }
    return page;
  };
}

function toPage({ depths, held }: WorkCounts): Promise<string> {
  const registry = new Registry();
  const gauge = <Label extends string>(name: string, help: string, label: Label) =>
    new Gauge({ name, help, labelNames: [label], registers: [registry] });
  const ready = gauge("oracle_queue_ready_jobs", "Jobs that could start now.", "queue");
  const oldest = gauge("oracle_queue_oldest_seconds", "How long the first of them has waited.", "queue");
  const waiting = gauge("oracle_held_jobs", "Jobs that wait for a person, by reason.", "reason");
  for (const { queue, ready: jobs, oldestSeconds } of depths) {
    ready.set({ queue }, jobs);
    oldest.set({ queue }, oldestSeconds);
  }
  for (const { reason, jobs } of held) waiting.set({ reason }, jobs);
  return registry.metrics();
}
