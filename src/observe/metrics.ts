import { AggregatorRegistry, Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { WorkerEvent } from "../core/events.js";

/** What one worker process counts, as Prometheus reads it. Names are documented in docs/operations.md. */
export class WorkerMetrics {
  private readonly registry = new Registry();
  private readonly started = new Counter({
    name: "oracle_jobs_started_total",
    help: "Attempts that began to run.",
    labelNames: ["queue", "type"],
    registers: [this.registry],
  });
  private readonly settled = new Counter({
    name: "oracle_jobs_settled_total",
    help: "Attempts whose outcome is written, by outcome.",
    labelNames: ["queue", "type", "outcome"],
    registers: [this.registry],
  });
  private readonly failed = new Counter({
    name: "oracle_job_failures_total",
    help: "Attempts that failed or were handed back, by cause.",
    labelNames: ["type", "cause"],
    registers: [this.registry],
  });
  private readonly lost = new Counter({
    name: "oracle_leases_lost_total",
    help: "Leases that ran out or were taken over while this process held them.",
    registers: [this.registry],
  });
  private readonly pruned = new Counter({
    name: "oracle_jobs_pruned_total",
    help: "Finished jobs that were deleted for their age.",
    registers: [this.registry],
  });
  private readonly waited = new Histogram({
    name: "oracle_job_wait_seconds",
    help: "From being due to being started, by this machine's clock.",
    labelNames: ["queue"],
    buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 7200],
    registers: [this.registry],
  });
  private readonly ran = new Histogram({
    name: "oracle_job_run_seconds",
    help: "From start to outcome.",
    labelNames: ["type"],
    buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 7200],
    registers: [this.registry],
  });

  constructor() {
    // Among them the event loop's lag.
    collectDefaultMetrics({ register: this.registry });
  }

  readonly hear = (event: WorkerEvent): void => {
    if (event.event === "job.started") {
      const { queue, type, readySince } = event.lease;
      this.started.inc({ queue, type });
      this.waited.observe({ queue }, Math.max(0, Date.now() / 1000 - readySince));
    } else if (event.event === "job.settled") this.hearSettled(event);
    else if (event.event === "lease.lost") this.lost.inc();
    else if (event.event === "jobs.pruned") this.pruned.inc(event.jobs);
  };

  private hearSettled({ lease, outcome, seconds }: WorkerEvent & { event: "job.settled" }): void {
    const { queue, type } = lease;
    this.settled.inc({ queue, type, outcome: outcome.kind });
    this.ran.observe({ type }, seconds);
    if (outcome.kind === "retryable" || outcome.kind === "terminal")
      this.failed.inc({ type, cause: outcome.error.code });
    else if (outcome.kind === "released") this.failed.inc({ type, cause: outcome.cause });
  }

  /** In the form in which a supervisor adds up its processes'. */
  async snapshot(): Promise<MetricsSnapshot> {
    return this.registry.getMetricsAsJSON();
  }
}

export type MetricsSnapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** The metrics of several processes as one page. */
export function addUp(snapshots: MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots).metrics();
}
