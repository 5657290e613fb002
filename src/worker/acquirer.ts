import { type AcquiredMany, acquireMany } from "../store/acquire.js";
import type { Claim, HandlerVersions } from "../store/claim.js";
import type { Database } from "../store/database.js";

export interface AcquirerOptions {
  workerId: string;
  leaseSeconds: number;
  versions: HandlerVersions;
}

interface Waiting {
  jobId: string;
  resolve(lostBecause: string | undefined): void;
  reject(error: unknown): void;
}

const BATCH = 500;

/**
 * Wins leases of jobs known by their ids. Ids that come while a statement is under way share the next one. The
 * same id twice in one batch is asked for once, and won once.
 */
export class Acquirer {
  private queue: Waiting[] = [];
  private asking = false;

  constructor(
    private readonly db: Database,
    private readonly options: AcquirerOptions,
    private readonly admit: (claim: Claim) => void,
  ) {}

  /** Resolves with undefined when the lease is won and the job admitted, otherwise with the reason. */
  acquire(jobId: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      this.queue.push({ jobId, resolve, reject });
      if (!this.asking) void this.ask();
    });
  }

  private async ask(): Promise<void> {
    this.asking = true;
    // Let everything that arrives in this turn of the loop share the statement.
    await null;
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, BATCH);
      try {
        const ids = [...new Set(batch.map(({ jobId }) => jobId))];
        this.answer(batch, await acquireMany(this.db, ids, this.options));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.asking = false;
  }

  private answer(batch: Waiting[], acquired: AcquiredMany): void {
    this.admit(acquired);
    const { lost } = acquired;
    for (const { jobId, resolve } of batch) {
      resolve(lost.get(jobId));
      lost.set(jobId, "is running here already");
    }
  }
}
