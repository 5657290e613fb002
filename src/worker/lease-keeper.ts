import { Worker as Thread } from "node:worker_threads";
import type { Lease } from "../core/job.js";
import type { DatabaseOptions } from "../store/database.js";
import type { WorkerRecord } from "../store/workers.js";
import { LeasePage, PAGE_SLOTS } from "./lease-page.js";
import { LoopClock } from "./loop-clock.js";

/** What the main thread tells the renewal thread. */
export type KeeperCommand =
  /** Memory for more leases, which are written there without a word. */
  { page: SharedArrayBuffer } | { draining: true } | { stop: true };

/** What the renewal thread tells back. */
export type KeeperReport =
  | { lost: string[]; why: string }
  /** Attempts that the thread ended at their timeout, because the event loop was blocked. */
  | { blocked: { jobId: string; attemptId: string }[] }
  /** The thread is gone: nothing will be renewed any more. */
  | { died: string }
  | { trouble: string }
  | { recovered: true }
  | { ready: true };

export interface KeeperData {
  database: DatabaseOptions;
  worker: WorkerRecord;
  /** A supervisor reads the journal: it replaces this process when its event loop is blocked past a timeout. */
  supervised: boolean;
}

/** What the thread gets: its data, and the memory it shares. */
export interface KeeperThreadData extends KeeperData {
  clock: SharedArrayBuffer;
}

/**
 * Renews the leases of this process from a thread and a connection of its own, so that a handler that blocks
 * the event loop does not lose them; and ends such a handler's attempt at its timeout, which the loop cannot.
 */
export class LeaseKeeper {
  private readonly thread: Thread;
  private readonly exited: Promise<void>;
  private readonly clock = new LoopClock();
  private readonly pages: LeasePage[] = [];
  private readonly freeSlots: number[] = [];
  private stopping = false;
  readonly ready: Promise<void>;

  constructor(data: KeeperData, report: (report: KeeperReport) => void) {
    this.clock.beat();
    const workerData: KeeperThreadData = { ...data, clock: this.clock.memory };
    this.thread = new Thread(new URL("./lease-thread.js", import.meta.url), {
      workerData,
      // Flags of the host, such as --input-type, are not meant for this file.
      execArgv: [],
      // It holds ids only; the default heap reservation would be paid by every worker process.
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    });
    this.exited = new Promise((resolve) => this.thread.once("exit", () => resolve()));
    void this.exited.then(() => this.stopping || report({ died: "it ended by itself" }));
    this.ready = new Promise((resolve, reject) => {
      this.thread.on("message", (message: KeeperReport) => {
        if ("ready" in message) resolve();
        else report(message);
      });
      this.thread.on("error", (error) => {
        reject(error);
        report({ died: error.message });
      });
    });
  }

  /** Holds the leases from now on; returns the slot of each, by which it is spoken of. */
  take(leases: Lease[]): number[] {
    const now = LoopClock.now();
    return leases.map(({ jobId, attemptId }) => {
      const slot = this.freeSlots.pop() ?? this.addPage();
      this.pageOf(slot).take(slot % PAGE_SLOTS, jobId, attemptId, now);
      return slot;
    });
  }

  /** The attempt runs now, until `endsAt` by performance.now(); then it is retried, or ends if there is no delay. */
  started(slot: number, endsAt: number, retryDelaySeconds: number | undefined): void {
    this.pageOf(slot).start(slot % PAGE_SLOTS, performance.timeOrigin + endsAt, retryDelaySeconds);
  }

  /** The handler has ended; its outcome may still wait to be written. */
  ended(slot: number): void {
    this.pageOf(slot).end(slot % PAGE_SLOTS);
  }

  /** Its outcome is written, or the lease is lost. */
  drop(slot: number): void {
    this.pageOf(slot).drop(slot % PAGE_SLOTS);
    this.freeSlots.push(slot);
  }

  /** Says that the event loop turns. */
  beat(): void {
    this.clock.beat();
  }

  announceDraining(): void {
    this.tell({ draining: true });
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.tell({ stop: true });
    await this.exited;
  }

  private pageOf(slot: number): LeasePage {
    return this.pages[Math.floor(slot / PAGE_SLOTS)] as LeasePage;
  }

  /** Returns the first slot of a new page; the others are free. */
  private addPage(): number {
    const first = this.pages.length * PAGE_SLOTS;
    const page = new LeasePage();
    this.pages.push(page);
    this.tell({ page: page.memory });
    for (let slot = first + PAGE_SLOTS - 1; slot > first; slot--) this.freeSlots.push(slot);
    return first;
  }

  private tell(command: KeeperCommand): void {
    this.thread.postMessage(command);
  }
}
