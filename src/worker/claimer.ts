import type { Lease } from "../core/job.js";
import { type Claim, claim, type HandlerVersions, type Slice } from "../store/claim.js";
import type { Database } from "../store/database.js";
import { discover } from "../store/discover.js";

/** How many tenants one look-round visits; the next one goes on where it ended. */
const TENANTS_PER_LOOK = 64;
/** Looks round at least this often while jobs flow, and never for more than a fifth of the time. */
const LOOK_EVERY_MS = 100;
const LOOK_SHARE = 5;
const NIL_ID = "00000000-0000-0000-0000-000000000000";

export interface ClaimerOptions {
  workerId: string;
  queues: string[];
  leaseSeconds: number;
  versions: HandlerVersions;
}

/**
 * Decides from which tenants' slices to claim. What it remembers are hints: a slice's head lets claims start
 * behind entries that are dead but not yet removable, and a look-round corrects it.
 */
export class Claimer {
  private slices: Slice[] = [];
  private turn = 0;
  private lookAfter = "";
  private lookedAt = Number.NEGATIVE_INFINITY;
  private lookCost = 0;
  /** The last claim found less than it asked for: look round before the next. */
  private short = true;

  constructor(
    private readonly db: Database,
    private readonly options: ClaimerOptions,
  ) {}

  /** Something may have become ready: the remembered slices are worth one claim before a look-round. */
  nudge(): void {
    this.short = this.slices.length === 0;
  }

  async take(want: number): Promise<Claim> {
    if (!this.short && !this.lookIsDue()) {
      const taken = await this.claim(want);
      if (taken.leases.length > 0) return taken;
    }
    // What the remembered heads do not show may still be there: a new tenant, a higher priority, a late commit.
    return (await this.look()) ? this.claim(want) : { claimId: "", leases: [] };
  }

  private async claim(want: number): Promise<Claim> {
    const { workerId, leaseSeconds, versions } = this.options;
    const taken = await claim(this.db, { workerId, leaseSeconds, versions, quotas: this.share(want) });
    this.short = taken.leases.length < want;
    this.passHeads(taken.leases);
    return taken;
  }

  /** What was claimed lies behind us: the next claim need not walk over it again. */
  private passHeads(leases: Lease[]): void {
    for (const slice of this.slices) {
      if (slice.ageing) continue;
      let last: Lease | undefined;
      for (const lease of leases) {
        if (lease.queue !== slice.queue || lease.tenantId !== slice.tenantId) continue;
        if (!last || lease.priority < last.priority) last = lease;
        else if (lease.priority === last.priority && lease.readySince > last.readySince) last = lease;
      }
      if (!last) continue;
      slice.headRank = -last.priority;
      // To the millisecond below: a little too early only means a few entries more.
      slice.headReadyAt = new Date(Math.floor(last.readySince * 1000)).toISOString();
      slice.headJobId = NIL_ID;
    }
  }

  private lookIsDue(): boolean {
    return performance.now() - this.lookedAt > Math.max(LOOK_EVERY_MS, LOOK_SHARE * this.lookCost);
  }

  private async look(): Promise<boolean> {
    const startedAt = performance.now();
    const { queues, versions } = this.options;
    let found = await discover(this.db, queues, this.lookAfter, TENANTS_PER_LOOK, versions);
    if (found.length === 0 && this.lookAfter !== "") {
      found = await discover(this.db, queues, "", TENANTS_PER_LOOK, versions);
    }
    this.lookedAt = performance.now();
    this.lookCost = this.lookedAt - startedAt;
    this.lookAfter = found.length >= TENANTS_PER_LOOK ? (found.at(-1)?.tenantId ?? "") : "";
    if (found.length > 0) this.slices = found;
    return found.length > 0;
  }

  /** Equal shares; where they do not come out even, the turn moves on from claim to claim. */
  private share(want: number): { slice: Slice; quota: number }[] {
    const { slices } = this;
    const each = Math.floor(want / slices.length);
    const rest = want % slices.length;
    const quotas = slices.map((slice, index) => ({
      slice,
      quota: each + ((index - this.turn + slices.length) % slices.length < rest ? 1 : 0),
    }));
    this.turn = (this.turn + rest) % slices.length;
    return quotas.filter(({ quota }) => quota > 0);
  }
}
