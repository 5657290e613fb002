import { AggregatorRegistry, Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import { foundFailures } from "../core/activity.js";
import type { WorkerEvent } from "../core/events.js";
import type { Lease, Outcome } from "../core/job.js";
import { type PoolUse, watchPool } from "./pool-gauges.js";

/** What one worker process counts, as Prometheus reads it. Names are documented in docs/operations.md. */
export class WorkerMetrics {
  private readonly registry = new Registry();
  private readonly claimed = new Counter({
    name: "oracle_jobs_claimed_total",
    help: "Leases won, whether or not the job began to run here.",
    labelNames: ["queue"],
    registers: [this.registry],
  });
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
  private readonly retried = new Counter({
    name: "oracle_job_retries_total",
    help: "Attempts after which the job runs again, by the cause of their end.",
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

  watchPool(read: () => PoolUse): void {
    watchPool(this.registry, read);
  }

  readonly hear = (event: WorkerEvent): void => {
    if (event.event === "jobs.claimed") for (const { queue } of event.leases) this.claimed.inc({ queue });
    else if (event.event === "job.started") this.hearStarted(event.lease);
    else if (event.event === "job.settled") this.hearSettled(event);
    else if (event.event === "lease.lost") this.lost.inc();
    else if (event.event === "jobs.pruned") this.pruned.inc(event.jobs);
  };

  private hearStarted({ queue, type, readySince, lastError }: Lease): void {
    this.started.inc({ queue, type });
    this.waited.observe({ queue }, Math.max(0, Date.now() / 1000 - readySince));
    // The attempt before it vanished with its process or its lease: nobody else counts that.
    if (lastError === null || !foundFailures.has(lastError)) return;
    this.failed.inc({ type, cause: lastError });
    this.retried.inc({ type, cause: lastError });
  }

  private hearSettled({ lease, outcome, state, seconds }: WorkerEvent & { event: "job.settled" }): void {
    const { queue, type } = lease;
    this.settled.inc({ queue, type, outcome: outcome.kind });
    this.ran.observe({ type }, seconds);
    const cause = causeOf(outcome);
    if (cause === undefined) return;
    this.failed.inc({ type, cause });
    if (state === "PENDING" || state === "FAILED_RETRYABLE") this.retried.inc({ type, cause });
  }

  /** In the form in which a supervisor adds up its processes'. */
  async snapshot(): Promise<MetricsSnapshot> {
    return this.registry.getMetricsAsJSON();
  }
}

/** Undefined for an attempt that neither failed nor was handed back. */
function causeOf(outcome: Outcome): string | undefined {
  if (outcome.kind === "retryable" || outcome.kind === "terminal") return outcome.error.code;
  return outcome.kind === "released" ? outcome.cause : undefined;
}

export type MetricsSnapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** The metrics of several processes as one page. */
export function addUp(snapshots: MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots).metrics();
}
