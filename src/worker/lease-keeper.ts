import { Worker as Thread } from "node:worker_threads";
import type { Lease } from "../core/job.js";
import type { DatabaseOptions } from "../store/database.js";
import type { WorkerRecord } from "../store/workers.js";

/** What the main thread tells the renewal thread. */
export type KeeperCommand =
  /** Job and attempt in turn: one flat list is cheaper to hand over than a thousand objects. */
  { take: string[] } | { drop: string[] } | { draining: true } | { stop: true };

/** What the renewal thread tells back. */
export type KeeperReport =
  | { lost: string[]; why: string }
  | { trouble: string }
  | { recovered: true }
  | { ready: true };

export interface KeeperData {
  database: DatabaseOptions;
  worker: WorkerRecord;
}

const DROP_MS = 50;

/**
 * Renews the leases of this process from a thread and a connection of its own, so that a handler that blocks
 * the event loop does not lose them.
 */
export class LeaseKeeper {
  private readonly thread: Thread;
  private readonly exited: Promise<void>;
  private dropped: string[] = [];
  readonly ready: Promise<void>;

  constructor(data: KeeperData, report: (report: KeeperReport) => void) {
    this.thread = new Thread(new URL("./lease-thread.js", import.meta.url), {
      workerData: data,
      // Flags of the host, such as --input-type, are not meant for this file.
      execArgv: [],
      // It holds ids only; the default heap reservation would be paid by every worker process.
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    });
    this.exited = new Promise((resolve) => this.thread.once("exit", () => resolve()));
    this.ready = new Promise((resolve, reject) => {
      this.thread.on("message", (message: KeeperReport) => {
        if ("ready" in message) resolve();
        else report(message);
      });
      this.thread.on("error", (error) => {
        reject(error);
        report({ lost: [], why: `the renewal thread died: ${error.message}` });
      });
    });
  }

  take(leases: Lease[]): void {
    this.tell({ take: leases.flatMap(({ jobId, attemptId }) => [jobId, attemptId]) });
  }

  /** Gathers what ends within a moment into one message; until it arrives a renewal finds nothing to renew. */
  drop(attemptId: string): void {
    if (this.dropped.push(attemptId) > 1) return;
    setTimeout(() => {
      this.tell({ drop: this.dropped });
      this.dropped = [];
    }, DROP_MS);
  }

  announceDraining(): void {
    this.tell({ draining: true });
  }

  async stop(): Promise<void> {
    this.tell({ stop: true });
    await this.exited;
  }

  private tell(command: KeeperCommand): void {
    this.thread.postMessage(command);
  }
}
