import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, Outcome } from "../core/job.js";
import type { Registry } from "../handlers/registry.js";
import { findCancelRequests } from "../store/control.js";
import type { Database } from "../store/database.js";
import { Listener } from "../store/listen.js";
import { promote } from "../store/promote.js";
import { reclaim } from "../store/reclaim.js";
import { findServedTypes } from "../store/workers.js";
import { Claimer } from "./claimer.js";
import { type KeeperData, type KeeperReport, LeaseKeeper } from "./lease-keeper.js";
import { Settler } from "./settler.js";
import { type SlotOptions, Slots, STOP_GRACE_MS } from "./slots.js";

export interface WorkerOptions extends SlotOptions {
  queues: string[];
  leaseSeconds: number;
  pollMs: number;
  graceMs: number;
  keeper: KeeperData;
}

const WATCH_MS = 250;

/**
 * Takes jobs for its slots: at a wake-up, when a slot is free, and by polling, which alone would be enough.
 * What happens to a job from here on: slots → execute → settler.
 */
export class Worker {
  private readonly claimer: Claimer;
  private readonly slots: Slots;
  private readonly keeper: LeaseKeeper;
  private readonly listener: Listener;
  private readonly queueHashes: Set<string>;
  private tickTimer: NodeJS.Timeout | undefined;
  private watchTimer: NodeJS.Timeout | undefined;
  private filling = false;
  private fillAgain = false;
  private ticking = false;
  private tickAgain = false;
  /** The last claim found nothing. */
  private dry = false;
  private stopping: Promise<void> | undefined;
  private readonly troubled = new Set<string>();
  private readonly drainWaiters: (() => void)[] = [];

  constructor(
    private readonly db: Database,
    private readonly registry: Registry,
    private readonly options: WorkerOptions,
  ) {
    const { workerId, emit } = options;
    this.claimer = new Claimer(db, options);
    this.keeper = new LeaseKeeper(options.keeper, (report) => this.onKeeperReport(report));
    const settler = new Settler(db, (error) => this.trouble("settle", error));
    this.slots = new Slots(registry, settler, this.keeper, options, {
      onRoom: () => void this.fill(),
      onSettled: () => this.onSettled(),
      onUnknownType: (lease) => this.judgeUnknownType(lease),
    });
    this.queueHashes = new Set(options.queues.map((queue) => hash("md5", queue).slice(0, 8)));
    this.listener = new Listener(db, {
      onMessage: (payload) => this.onMessage(payload),
      onLost: (why) => emit({ event: "wakeup.lost", workerId, why }),
      onRestored: () => {
        emit({ event: "wakeup.restored", workerId });
        this.wake();
      },
    });
  }

  async start(): Promise<void> {
    const { workerId, queues, concurrency, emit } = this.options;
    await Promise.all([this.keeper.ready, this.listener.start()]);
    this.watchTimer = setInterval(() => this.slots.watch(), WATCH_MS);
    emit({ event: "worker.started", workerId, queues, concurrency, jobTypes: this.registry.types() });
    void this.tick();
  }

  /** Resolves when nothing is ready in the queues and nothing of this worker is under way. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.drainWaiters.push(resolve);
      void this.tick();
    });
  }

  /** Finishes what runs within the grace, hands back the rest. A second call waits for the first. */
  stop(): Promise<void> {
    this.stopping ??= this.shutDown();
    return this.stopping;
  }

  /** Tells running handlers to end now, not at the end of the grace. */
  abort(): void {
    this.slots.stopAll("shutdown");
  }

  private wake(): void {
    this.dry = false;
    this.claimer.nudge();
    void this.fill();
  }

  private onMessage(payload: string): void {
    if (payload === "sweep") void this.tick();
    else if (payload === "cancel") void this.stopCancelled();
    else if (this.queueHashes.has(payload)) this.wake();
  }

  private onSettled(): void {
    this.recovered("settle");
    if (this.dry) this.checkDrained();
    else void this.fill();
  }

  private onKeeperReport(report: KeeperReport): void {
    const { workerId, emit } = this.options;
    if ("lost" in report) {
      for (const attemptId of report.lost) {
        const lease = this.slots.stop(attemptId, "lease-lost");
        if (lease) emit({ event: "lease.lost", workerId, lease, why: report.why });
      }
    } else if ("trouble" in report) this.trouble("renew", new Error(report.trouble));
    else this.recovered("renew");
  }

  /** What time brings: due timers, leases that ran out, cancels whose notice was lost. */
  private async tick(): Promise<void> {
    if (this.ticking) {
      this.tickAgain = true;
      return;
    }
    this.ticking = true;
    clearTimeout(this.tickTimer);
    let nextMs = this.options.pollMs;
    await this.guard("poll", async () => {
      const { more, nextInSeconds } = await promote(this.db);
      nextMs = more ? 0 : Math.min(nextMs, Math.max(1, (nextInSeconds ?? Number.POSITIVE_INFINITY) * 1000));
      await this.sweep();
    });
    await this.stopCancelled();
    this.ticking = false;
    if (this.stopping) return;
    if (this.tickAgain) nextMs = 0;
    this.tickAgain = false;
    this.tickTimer = setTimeout(() => void this.tick(), nextMs);
    this.wake();
  }

  private async sweep(): Promise<void> {
    const { workerId, queues, leaseSeconds, emit } = this.options;
    const reclaimed = await reclaim(this.db, { workerId, queues, leaseSeconds, limit: this.slots.free });
    for (const job of reclaimed.ended) emit({ event: "job.ended", workerId, ...job });
    this.slots.admit(reclaimed);
  }

  private async stopCancelled(): Promise<void> {
    const jobIds = this.slots.runningJobIds;
    if (jobIds.length === 0) return;
    await this.guard("cancel", async () => {
      for (const attemptId of await findCancelRequests(this.db, jobIds)) this.slots.stop(attemptId, "cancel");
    });
  }

  /** Claims until the slots are full or nothing is ready. One claim at a time. */
  private async fill(): Promise<void> {
    if (this.filling) {
      this.fillAgain = true;
      return;
    }
    this.filling = true;
    do {
      this.fillAgain = false;
      for (let want = this.slots.room(); want > 0; want = this.slots.room()) {
        let found = 0;
        await this.guard("claim", async () => {
          const claimed = await this.claimer.take(want);
          found = claimed.leases.length;
          this.slots.admit(claimed);
        });
        this.dry = found === 0;
        if (this.dry) break;
      }
    } while (this.fillAgain);
    this.filling = false;
    this.checkDrained();
  }

  /** A type unknown here: somebody else's if a live worker serves it, otherwise nobody's. */
  private async judgeUnknownType(lease: Lease): Promise<Outcome> {
    let served = true;
    await this.guard("look up job types", async () => {
      served = (await findServedTypes(this.db)).has(lease.type);
    });
    if (served) {
      const delaySeconds = Math.min(60, 2 ** Math.min(lease.interruptions, 6));
      return { kind: "released", cause: "NO_HANDLER_HERE", delaySeconds };
    }
    const message = `No live worker has a handler for job type ${JSON.stringify(lease.type)}.`;
    return { kind: "terminal", error: { code: "UNSUPPORTED_JOB_TYPE", message, retryable: false } };
  }

  private async shutDown(): Promise<void> {
    const { workerId, emit, graceMs } = this.options;
    emit({ event: "worker.draining", workerId, running: this.slots.runningCount });
    this.keeper.announceDraining();
    clearTimeout(this.tickTimer);
    const handedBack = this.slots.close();
    await this.untilQuiet(graceMs);
    this.abort();
    await this.untilQuiet(STOP_GRACE_MS);
    clearInterval(this.watchTimer);
    await Promise.all([this.listener.stop(), this.keeper.stop()]);
    await this.db.close();
    emit({ event: "worker.stopped", workerId, handedBack, abandoned: this.slots.runningCount });
  }

  private async untilQuiet(withinMs: number): Promise<void> {
    const endsAt = performance.now() + withinMs;
    while (!(this.slots.quiet && !this.filling && !this.ticking) && performance.now() < endsAt)
      await sleep(10);
  }

  private checkDrained(): void {
    if (!this.dry || this.filling || !this.slots.quiet || this.troubled.size > 0) return;
    for (const resolve of this.drainWaiters.splice(0)) resolve();
  }

  private async guard(during: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.recovered(during);
    } catch (error) {
      this.trouble(during, error);
    }
  }

  private trouble(during: string, error: unknown): void {
    if (this.troubled.has(during)) return;
    this.troubled.add(during);
    this.options.emit({ event: "database.trouble", workerId: this.options.workerId, during, error });
  }

  private recovered(during: string): void {
    if (!this.troubled.delete(during)) return;
    this.options.emit({ event: "database.recovered", workerId: this.options.workerId, during });
  }
}
