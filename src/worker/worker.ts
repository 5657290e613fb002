import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "../core/dispatch.js";
import type { Registry } from "../handlers/registry.js";
import type { Database } from "../store/database.js";
import { Listener } from "../store/listen.js";
import { checkJobId } from "../store/read.js";
import { Acquirer } from "./acquirer.js";
import type { ActivityRecorder } from "./activity.js";
import { Claimer } from "./claimer.js";
import { Dispatch } from "./dispatch.js";
import { DrainWaiters } from "./drain-waiters.js";
import { KeeperReports } from "./keeper-reports.js";
import { type KeeperData, LeaseKeeper } from "./lease-keeper.js";
import { Looks } from "./looks.js";
import { Pruner, type RetentionPolicy } from "./pruner.js";
import { type RoundOptions, Rounds } from "./rounds.js";
import { Settler } from "./settler.js";
import { Slots, STOP_GRACE_MS } from "./slots.js";
import { Troubles } from "./troubles.js";
import { judgeUnknownType } from "./unknown-type.js";

export interface WorkerOptions extends RoundOptions {
  graceMs: number;
  keeper: KeeperData;
  /** Counts what `emit` tells; has a last word before the connections close. */
  activity: Pick<ActivityRecorder, "stop">;
  /** Carries wake-ups by messages, beside the database's own. */
  dispatcher?: Dispatcher | undefined;
  retention: RetentionPolicy;
}

const WATCH_MS = 250;

/**
 * Takes jobs for its slots: at a wake-up, when a slot is free, and by polling, which alone would be enough.
 * What happens to a job from here on: slots → execute → settler.
 */
export class Worker {
  private readonly troubles: Troubles;
  private readonly claimer: Claimer;
  private readonly looks: Looks;
  private readonly acquirer: Acquirer;
  private readonly dispatch: Dispatch | undefined;
  private readonly slots: Slots;
  private readonly rounds: Rounds;
  private readonly pruner: Pruner;
  private readonly keeper: LeaseKeeper;
  private readonly listener: Listener;
  private readonly queueHashes: Set<string>;
  private watchTimer: NodeJS.Timeout | undefined;
  private search: Promise<void> | undefined;
  private fillAgain = false;
  private stopping: Promise<void> | undefined;
  private readonly drainWaiters = new DrainWaiters();

  constructor(
    private readonly db: Database,
    private readonly registry: Registry,
    private readonly options: WorkerOptions,
  ) {
    const { workerId, emit } = options;
    this.troubles = new Troubles(workerId, emit);
    this.claimer = new Claimer(db, options);
    this.looks = new Looks(
      () => this.troubles.guard("look", () => this.claimer.look(Math.max(1, this.room()))),
      () => this.fill(),
    );
    this.keeper = new LeaseKeeper(options.keeper, (report) => reports.take(report));
    const settler = new Settler(db, (error) => this.troubles.begin("settle", error));
    this.slots = new Slots(registry, settler, this.keeper, options, {
      onRoom: () => this.onRoom(),
      onSettled: () => this.onSettled(),
      onSlotFreed: () => this.onSlotFreed(),
      onUnknownType: (lease) => judgeUnknownType(db, lease),
    });
    const { slots, keeper, troubles, drainWaiters } = this;
    const reports = new KeeperReports(options, { slots, keeper, troubles, drainWaiters });
    this.rounds = new Rounds(db, options, this.slots, this.troubles, (opened) => this.onRound(opened));
    this.acquirer = new Acquirer(db, options, (claim) => this.slots.admit(claim));
    this.dispatch =
      options.dispatcher &&
      new Dispatch(db, options.dispatcher, options, {
        room: () => this.slots.room(),
        search: () => this.search,
        run: (jobId) => this.executeRun(jobId),
        wake: () => this.wake(),
      });
    this.pruner = new Pruner(db, options.retention, options, (work) => this.troubles.guard("prune", work));
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
    await Promise.all([this.keeper.ready, this.listener.start(), this.dispatch?.start()]);
    this.watchTimer = setInterval(() => {
      this.keeper.beat();
      this.slots.watch();
    }, WATCH_MS);
    emit({ event: "worker.started", workerId, queues, concurrency, jobTypes: this.registry.types() });
    void this.rounds.make();
    this.pruner.start();
  }

  /** Resolves when nothing is ready in the queues and nothing of this worker is under way. */
  drained(): Promise<void> {
    const drained = this.drainWaiters.wait();
    void this.rounds.make();
    return drained;
  }

  /**
   * Runs a job here if its lease can be won: the one entry for ids that some broker delivered, however often, late or
   * wrongly. Resolves as soon as that is decided, which is when a message can be acknowledged.
   */
  async executeRun(jobId: string): Promise<{ won: true } | { won: false; why: string }> {
    const why = this.stopping
      ? "came to a worker that is stopping"
      : await this.acquirer.acquire(checkJobId(jobId));
    if (why === undefined) return { won: true };
    this.options.emit({ event: "acquire.lost", workerId: this.options.workerId, jobId, why });
    return { won: false, why };
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

  poolUse(): ReturnType<Database["poolUse"]> {
    return this.db.poolUse();
  }

  private wake(): void {
    this.claimer.nudge();
    this.fill();
  }

  private onMessage(payload: string): void {
    if (payload === "sweep") void this.rounds.make();
    else if (payload === "cancel") void this.rounds.stopCancelled();
    else if (this.queueHashes.has(payload)) {
      void this.dispatch?.relay();
      if (!this.dispatch?.flows) this.wake();
    }
  }

  private onRoom(): void {
    if (!this.dry) this.fill();
    // While messages flow, a search that found nothing is not repeated for every job that ends.
    else if (this.dispatch?.suffices) this.dispatch.resume();
    else if (this.dispatch) this.wake();
  }

  private onSettled(): void {
    this.troubles.over("settle");
    if (this.dry) this.checkDrained();
    else this.fill();
  }

  /** Another job may start for it, perhaps one that is parked: a round hands the slot on. */
  private onSlotFreed(): void {
    void this.rounds.make();
  }

  private onRound(opened: boolean): void {
    void this.dispatch?.relay();
    if (opened) this.wake();
    else if (!this.dispatch?.suffices || this.drainWaiters.any) {
      this.claimer.doubt();
      this.fill();
    }
  }

  /** One search at a time; a call during one leads to another. */
  private fill(): void {
    if (this.search) {
      this.fillAgain = true;
      return;
    }
    this.search = this.claimReady().then(() => {
      this.search = undefined;
      this.checkDrained();
    });
  }

  /** Claims until the slots are full or nothing is known to be ready; what is not known, a look will show. */
  private async claimReady(): Promise<void> {
    this.dispatch?.searched();
    do {
      this.fillAgain = false;
      for (let want = this.room(); want > 0; want = this.room()) {
        let found = 0;
        await this.troubles.guard("claim", async () => {
          const claimed = await this.claimer.claim(want);
          found = claimed.leases.length;
          this.slots.admit(claimed);
        });
        const rest = this.claimer.restBeforeLook;
        if (rest !== undefined) this.looks.ask(rest);
        if (found === 0) break;
      }
    } while (this.fillAgain);
    // As long as a search finds more than there is room for, messages would only be put back.
    if (this.dry) this.dispatch?.resume();
  }

  /** Nothing is known to be ready, and a look has shown that there is nothing else. */
  private get dry(): boolean {
    return !this.claimer.promising && this.claimer.restBeforeLook === undefined && !this.looks.owed;
  }

  private room(): number {
    return this.slots.room() - (this.dispatch?.entering ?? 0);
  }

  private async shutDown(): Promise<void> {
    const { workerId, emit, graceMs } = this.options;
    emit({ event: "worker.draining", workerId, running: this.slots.runningCount });
    this.keeper.announceDraining();
    this.rounds.stop();
    this.looks.stop();
    await Promise.all([this.dispatch?.stop(), this.pruner.stop()]);
    const handedBack = this.slots.close();
    await this.untilQuiet(graceMs);
    this.abort();
    await this.untilQuiet(STOP_GRACE_MS);
    clearInterval(this.watchTimer);
    await this.options.runners.close();
    const { reporter, activity } = this.options;
    await Promise.all([this.listener.stop(), this.keeper.stop(), reporter.close(), activity.stop()]);
    await this.db.close();
    emit({ event: "worker.stopped", workerId, handedBack, abandoned: this.slots.runningCount });
  }

  private async untilQuiet(withinMs: number): Promise<void> {
    const endsAt = performance.now() + withinMs;
    const busy = () => !this.slots.quiet || this.search || this.looks.underWay || this.rounds.underWay;
    while (busy() && performance.now() < endsAt) await sleep(10);
  }

  private checkDrained(): void {
    if (!this.dry || this.search || this.rounds.underWay || this.rounds.dueSoon) return;
    if (!this.slots.quiet || this.troubles.any) return;
    this.drainWaiters.drained();
  }
}
