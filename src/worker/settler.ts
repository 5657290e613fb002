import type { Lease } from "../core/job.js";
import type { Database } from "../store/database.js";
import { isTransient } from "../store/database-errors.js";
import { hasCommits, type Settlement, settle } from "../store/settle.js";

/** An attempt's end, to be written. */
export interface Ended extends Settlement {
  lease: Lease;
  claimId: string;
  slot: number;
  seconds: number;
  /** Told the job's new state, or undefined when the lease was lost; `outcome` is then what was written. */
  onWritten(ended: Ended, state: string | undefined): void;
}

const BATCH = 1000;
const CONNECTIONS = 2;
/** For outcomes with statements of their own: these may take long, and only others of their kind wait for them. */
const OWN_CONNECTIONS = 2;
const RETRY_MS = 500;

/**
 * Gathers outcomes while earlier ones are being written, so that a lone job is settled at once and a crowd
 * shares statements. A batch that cannot be written for now is tried until it can: the lease decides when that
 * is too late, not we.
 */
export class Settler {
  private queue: Ended[] = [];
  private writing = 0;
  private readonly own: Ended[] = [];
  private writingOwn = 0;
  private unwritten = 0;
  private readonly openPerClaim = new Map<string, number>();
  private readonly finishedClaims: string[] = [];

  constructor(
    private readonly db: Database,
    private readonly onTrouble: (error: unknown) => void,
  ) {}

  /** How many outcomes are not yet written. */
  get pending(): number {
    return this.unwritten;
  }

  /** A batch of leases was taken; when its last one is settled its sweeper's hint can go. */
  track(claimId: string, leases: number): void {
    this.openPerClaim.set(claimId, leases);
  }

  add(entry: Ended): void {
    this.unwritten++;
    if (hasCommits(entry)) {
      this.own.push(entry);
      if (this.writingOwn < OWN_CONNECTIONS) void this.flushOwn();
      return;
    }
    this.queue.push(entry);
    if (this.writing === 0) void this.flush();
    else if (this.queue.length >= BATCH && this.writing < CONNECTIONS) void this.flush();
  }

  private async flush(): Promise<void> {
    this.writing++;
    // Let everything that ends in this turn of the loop share the statement.
    await null;
    while (this.queue.length > 0) await this.write(this.queue.splice(0, BATCH));
    this.writing--;
  }

  private async flushOwn(): Promise<void> {
    this.writingOwn++;
    for (let entry = this.own.shift(); entry; entry = this.own.shift()) await this.write([entry]);
    this.writingOwn--;
  }

  private async write(batch: Ended[]): Promise<void> {
    // They ride on the statement for successes; a batch without one leaves them to the next.
    const claims = batch.some(({ outcome }) => outcome.kind === "succeeded")
      ? this.finishedClaims.splice(0)
      : [];
    for (;;) {
      try {
        const won = await settle(this.db, batch, claims);
        for (const entry of batch) {
          this.countDown(entry.claimId);
          this.end(entry, won.get(entry.lease.attemptId));
        }
        return;
      } catch (error) {
        this.onTrouble(error);
        if (!isTransient(error) && batch.length > 1) {
          // One row that cannot be stored must not take the others with it.
          for (const entry of batch) await this.write([entry]);
          return;
        }
        if (!isTransient(error)) {
          for (const entry of batch) this.end(entry, undefined);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  private end(entry: Ended, state: string | undefined): void {
    this.unwritten--;
    entry.onWritten(entry, state);
  }

  private countDown(claimId: string): void {
    const open = (this.openPerClaim.get(claimId) ?? 1) - 1;
    if (open > 0) this.openPerClaim.set(claimId, open);
    else {
      this.openPerClaim.delete(claimId);
      this.finishedClaims.push(claimId);
    }
  }
}
