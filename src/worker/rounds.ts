import type { HandlerVersions } from "../store/claim.js";
import { findCancelRequests } from "../store/control.js";
import type { Database } from "../store/database.js";
import { promote } from "../store/promote.js";
import { reclaim } from "../store/reclaim.js";
import type { SlotOptions, Slots } from "./slots.js";
import type { Troubles } from "./troubles.js";

export interface RoundOptions extends SlotOptions {
  queues: string[];
  /** Only this tenant's jobs; left out, everybody's. */
  tenant?: string | undefined;
  leaseSeconds: number;
  versions: HandlerVersions;
  pollMs: number;
}

/** A round that is due within this time may bring jobs at once. */
const SOON_MS = 21;

/** What time brings: due timers, leases that ran out, cancels whose notice was lost. One round at a time. */
export class Rounds {
  private timer: NodeJS.Timeout | undefined;
  private again = false;
  private stopped = false;
  /** A round is being made. */
  underWay = false;
  /** The next one may bring jobs at once: a slot to hand on, timers that are due. */
  dueSoon = false;

  constructor(
    private readonly db: Database,
    private readonly options: RoundOptions,
    private readonly slots: Slots,
    private readonly troubles: Troubles,
    /** After each; `opened` tells that a limit let somebody through. */
    private readonly onMade: (opened: boolean) => void,
  ) {}

  /** Now; during a round, once more after it. */
  async make(): Promise<void> {
    if (this.underWay) {
      this.again = true;
      return;
    }
    this.underWay = true;
    clearTimeout(this.timer);
    let nextMs = this.options.pollMs;
    let opened = false;
    await this.troubles.guard("poll", async () => {
      const { more, nextInSeconds, ...promoted } = await promote(this.db);
      opened = promoted.opened;
      nextMs = more ? 0 : Math.min(nextMs, Math.max(1, (nextInSeconds ?? Number.POSITIVE_INFINITY) * 1000));
      await this.sweep();
    });
    await this.stopCancelled();
    this.underWay = false;
    if (this.stopped) return;
    if (this.again) nextMs = 0;
    this.again = false;
    this.dueSoon = nextMs < Math.min(SOON_MS, this.options.pollMs);
    this.timer = setTimeout(() => void this.make(), nextMs);
    this.onMade(opened);
  }

  /** No more after the one under way. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  async stopCancelled(): Promise<void> {
    const jobIds = this.slots.runningJobIds;
    if (jobIds.length === 0) return;
    await this.troubles.guard("cancel", async () => {
      for (const attemptId of await findCancelRequests(this.db, jobIds)) this.slots.stop(attemptId, "cancel");
    });
  }

  private async sweep(): Promise<void> {
    const { workerId, emit } = this.options;
    const reclaimed = await reclaim(this.db, { ...this.options, limit: this.slots.free });
    for (const job of reclaimed.ended) emit({ event: "job.ended", workerId, ...job });
    this.slots.admit(reclaimed);
  }
}
