import { Worker as Thread } from "node:worker_threads";
import type { Lease } from "../core/job.js";
import type { DatabaseOptions } from "../store/database.js";
import type { WorkerRecord } from "../store/workers.js";
import { LoopClock } from "./loop-clock.js";

/** What the main thread tells the renewal thread. */
export type KeeperCommand =
  /** Job, attempt and slot in turn: one flat list is cheaper to hand over than a thousand objects. */
  { take: (string | number)[] } | { drop: string[] } | { draining: true } | { stop: true };

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

const DROP_MS = 50;
/** Attempts beyond this many are renewed like the others; only a blocked loop is then not noticed for them. */
const SLOTS = 32_768;

/**
 * Renews the leases of this process from a thread and a connection of its own, so that a handler that blocks
 * the event loop does not lose them; and ends such a handler's attempt at its timeout, which the loop cannot.
 */
export class LeaseKeeper {
  private readonly thread: Thread;
  private readonly exited: Promise<void>;
  private readonly clock = LoopClock.forSlots(SLOTS);
  private readonly slots = new Map<string, number>();
  private readonly freeSlots: number[] = [];
  private nextSlot = 0;
  private dropped: string[] = [];
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

  take(leases: Lease[]): void {
    this.tell({
      take: leases.flatMap(({ jobId, attemptId }) => [jobId, attemptId, this.giveSlot(attemptId)]),
    });
  }

  /** The attempt runs now, for so long at most; past that it is retried after the delay, or ends if there is none. */
  started(attemptId: string, forMs: number, retryDelaySeconds: number | undefined): void {
    const slot = this.slots.get(attemptId);
    if (slot !== undefined && slot >= 0) this.clock.start(slot, LoopClock.now() + forMs, retryDelaySeconds);
  }

  /** The handler has ended; its outcome may still wait to be written. */
  ended(attemptId: string): void {
    const slot = this.slots.get(attemptId);
    if (slot !== undefined && slot >= 0) this.clock.clear(slot);
  }

  /** Says that the event loop turns. */
  beat(): void {
    this.clock.beat();
  }

  /** Gathers what ends within a moment into one message; until it arrives a renewal finds nothing to renew. */
  drop(attemptId: string): void {
    if (this.dropped.push(attemptId) > 1) return;
    setTimeout(() => {
      this.tell({ drop: this.dropped });
      // Only now: the thread hears of the drop before it hears of the slot's next attempt.
      for (const each of this.dropped) this.takeSlotBack(each);
      this.dropped = [];
    }, DROP_MS);
  }

  announceDraining(): void {
    this.tell({ draining: true });
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.tell({ stop: true });
    await this.exited;
  }

  private giveSlot(attemptId: string): number {
    const slot = this.freeSlots.pop() ?? (this.nextSlot < SLOTS ? this.nextSlot++ : -1);
    this.slots.set(attemptId, slot);
    return slot;
  }

  private takeSlotBack(attemptId: string): void {
    const slot = this.slots.get(attemptId) ?? -1;
    this.slots.delete(attemptId);
    if (slot >= 0) this.freeSlots.push(slot);
  }

  private tell(command: KeeperCommand): void {
    this.thread.postMessage(command);
  }
}
