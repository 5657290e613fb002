import { OracleError } from "../core/errors.js";
import type { WorkerEventListener } from "../core/events.js";
import type { DrainWaiters } from "./drain-waiters.js";
import type { KeeperReport, LeaseKeeper } from "./lease-keeper.js";
import type { Slots } from "./slots.js";
import type { Troubles } from "./troubles.js";

interface Concerned {
  slots: Slots;
  keeper: LeaseKeeper;
  troubles: Troubles;
  drainWaiters: DrainWaiters;
}

/** What follows for a worker from what its renewal thread reports. */
export class KeeperReports {
  private broken = false;

  constructor(
    private readonly options: { workerId: string; emit: WorkerEventListener },
    private readonly concerned: Concerned,
  ) {}

  take(report: KeeperReport): void {
    const { troubles } = this.concerned;
    if ("lost" in report) this.onLost(report.lost, report.why);
    else if ("blocked" in report) this.onBlocked(report.blocked);
    else if ("died" in report) this.onDeath(report.died);
    else if ("trouble" in report) troubles.begin("renew", new Error(report.trouble));
    else troubles.over("renew");
  }

  private onLost(attemptIds: string[], why: string): void {
    const { workerId, emit } = this.options;
    for (const attemptId of attemptIds) {
      const lease = this.concerned.slots.stop(attemptId, "lease-lost");
      if (lease) emit({ event: "lease.lost", workerId, lease, why });
    }
  }

  /**
   * The loop turns again, after the thread had to end attempts for it. The host process is not ours to end, and
   * what blocked once will block again: take no more jobs, finish what runs.
   */
  private onBlocked(attempts: { jobId: string; attemptId: string }[]): void {
    const { workerId, emit } = this.options;
    const { slots, keeper, drainWaiters } = this.concerned;
    for (const { jobId, attemptId } of attempts) {
      slots.forget(attemptId);
      emit({ event: "worker.blocked", workerId, jobId });
      const message = `Job ${jobId} blocked the event loop past its timeout; this worker takes no more jobs. Restart it, and give the type isolation "thread" or "process".`;
      drainWaiters.giveUp(new OracleError("WORKER_BLOCKED", message, { jobId }));
    }
    keeper.announceDraining();
    slots.close();
  }

  /** Without renewal every lease will run out: stop the handlers before somebody else starts their jobs. */
  private onDeath(why: string): void {
    if (this.broken) return;
    this.broken = true;
    const { workerId, emit } = this.options;
    const { slots, drainWaiters } = this.concerned;
    emit({ event: "worker.broken", workerId, why });
    const message = `The renewal thread died (${why}); restart the worker.`;
    drainWaiters.giveUp(new OracleError("WORKER_BROKEN", message));
    slots.close();
    slots.stopAll("lease-lost");
  }
}
