import type { Lease } from "../core/job.js";
import { type Claim, claim, type HandlerVersions, type Slice } from "../store/claim.js";
import type { Database } from "../store/database.js";
import { discover } from "../store/discover.js";
import { divide, type Quota, type Share } from "./share.js";

/** How many tenants of a queue one look-round visits; the next one goes on where it ended. */
const TENANTS_PER_LOOK = 64;
/** Where nothing can be had from those visited, so many look-rounds follow each other. */
const LOOKS_AT_ONCE = 16;
/** Looks round at least this often while jobs flow. */
const LOOK_EVERY_MS = 100;
/** A look rests for as many times as long as the last one took: under an old snapshot they are slow. */
const REST = 5;
const NIL_ID = "00000000-0000-0000-0000-000000000000";

export interface ClaimerOptions {
  workerId: string;
  queues: string[];
  /** Only this tenant's jobs; left out, everybody's. */
  tenant?: string | undefined;
  leaseSeconds: number;
  versions: HandlerVersions;
}

/**
 * Decides from which tenants' slices to claim: by weight, from a set of tenants that it looks up now and then. A
 * queue with more tenants than one look shows is visited set by set, each until everybody in it had its share.
 * What it remembers are hints: a slice's head lets claims start behind entries that are dead but not yet
 * removable, and a look-round corrects it.
 */
export class Claimer {
  private shares: Share[] = [];
  /** How far the least served are; who comes back has saved nothing up. */
  private level = 0;
  /** Queues that have more tenants than the set, and the last one in it. */
  private more: Map<string, string> = new Map();
  /** The set is one of several, and is left when everybody is served this far. */
  private visitTo: number | undefined;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private lookCost = 0;
  /** The last claim found less than it asked for. */
  private short = true;
  /** Something may have become ready since then. */
  private heard = false;
  /** A claim did not find what was heard of; a look will. */
  private unseen = false;
  /** No look before this moment, by performance.now(). */
  private restsUntil = 0;

  constructor(
    private readonly db: Database,
    private readonly options: ClaimerOptions,
  ) {}

  /** Something may have become ready. */
  nudge(): void {
    this.heard = true;
  }

  /** How long the look rests that the last `take` would have made; 0: it was made, and what is ready was found. */
  get restMs(): number {
    return Math.max(0, this.restsUntil - performance.now());
  }

  async take(want: number): Promise<Claim> {
    const news = this.heard || this.unseen;
    if (this.worthOneClaim()) {
      const taken = await this.claim(want);
      if (taken.leases.length > 0) return taken;
    }
    // News that comes during a look waits for it: where nobody is known to have jobs left, slow looks are rare.
    const needed = this.more.size > 0 || this.shares.some(({ spent }) => !spent);
    // News may be of a tenant who is not in the set, and who must not wait: half of the time is not too much.
    this.restsUntil = needed ? 0 : this.lookedAt + (news ? 1 : REST) * this.lookCost;
    this.unseen = news;
    if (this.restMs > 0) return { claimId: "", leases: [] };
    // What the remembered heads do not show may still be there: a new tenant, a higher priority, a late commit.
    let roundsToGo = this.more.size > 0 ? 2 : 1;
    for (let looks = 0; looks < LOOKS_AT_ONCE && roundsToGo > 0; looks++) {
      if (await this.look(want)) {
        const taken = await this.claim(want);
        if (taken.leases.length > 0) return taken;
      }
      if (this.more.size === 0) roundsToGo--;
    }
    return { claimId: "", leases: [] };
  }

  /** Whether to claim from the set as it is, before looking round. */
  private worthOneClaim(): boolean {
    if (this.shares.length === 0) return false;
    if (this.short) {
      if (!this.heard) return false;
      // Most likely it is for one of those who had nothing left.
      for (const share of this.shares) share.spent = false;
      this.heard = false;
      return this.owed() > 0;
    }
    if (this.visitTo !== undefined) return this.owed() > 0;
    const patience = this.heard ? this.lookCost : Math.max(LOOK_EVERY_MS, REST * this.lookCost);
    return performance.now() - this.lookedAt < patience;
  }

  private async claim(want: number): Promise<Claim> {
    const { workerId, leaseSeconds, versions } = this.options;
    const quotas = divide(
      this.shares.filter(({ spent }) => !spent),
      Math.min(want, this.owed()),
    );
    const taken = await claim(this.db, {
      workerId,
      leaseSeconds,
      versions,
      quotas: quotas.map(({ share, jobs }) => ({ slice: share.slice, quota: jobs })),
    });
    this.note(quotas, taken);
    // Each such claim moved jobs out of the way, so this ends.
    return taken.parked && taken.leases.length === 0 ? this.claim(want) : taken;
  }

  /** How many jobs the set may have before the next one's turn. */
  private owed(): number {
    const { visitTo } = this;
    if (visitTo === undefined) return Number.POSITIVE_INFINITY;
    return this.shares.reduce((sum, { slice, served, spent }) => {
      return spent ? sum : sum + Math.max(0, Math.ceil((visitTo - served) * slice.weight));
    }, 0);
  }

  private note(quotas: Quota[], { leases, parked }: Claim): void {
    const claimed = new Map<string, Lease[]>();
    for (const lease of leases) {
      const name = nameOf(lease);
      const others = claimed.get(name);
      if (others) others.push(lease);
      else claimed.set(name, [lease]);
    }
    this.short = false;
    for (const { share, jobs } of quotas) {
      const got = claimed.get(nameOf(share.slice)) ?? [];
      share.served += got.length / share.slice.weight;
      share.spent = got.length < jobs && !parked;
      this.short ||= got.length < jobs;
      passHead(share.slice, got);
    }
    const waiting = this.shares.filter(({ spent }) => !spent).map(({ served }) => served);
    if (waiting.length > 0) this.level = Math.max(this.level, Math.min(...waiting));
  }

  /** Looks up the next set of tenants to claim from; false when there is nobody in it. */
  private async look(want: number): Promise<boolean> {
    const startedAt = performance.now();
    const { queues, versions, tenant } = this.options;
    const after = this.more;
    this.heard = false;
    this.unseen = false;
    const found = await discover(this.db, { queues, versions, tenant, after, limit: TENANTS_PER_LOOK });
    this.lookedAt = performance.now();
    // One look that took long, because the machine was busy, says little.
    this.lookCost = Math.min(this.lookedAt - startedAt, Math.max(1, 2 * this.lookCost));
    this.more = found.more;
    if (found.slices.length === 0) {
      // Where the heads were is worth remembering: the next job most likely comes behind one of them.
      for (const share of this.shares) share.spent = true;
      this.visitTo = undefined;
      return false;
    }
    const weights = found.slices.reduce((sum, { weight }) => sum + weight, 0);
    if (after.size + found.more.size > 0) {
      this.shares = found.slices.map((slice) => ({ slice, served: 0, spent: false }));
      this.level = 0;
      this.visitTo = Math.max(1, Math.floor(want / weights));
    } else {
      this.adopt(found.slices);
      this.visitTo = undefined;
    }
    return true;
  }

  /** Who was away comes first, but has saved nothing up. */
  private adopt(slices: Slice[]): void {
    const known = new Map(this.shares.map((share) => [nameOf(share.slice), share]));
    const shares = slices.map((slice) => {
      const { served, spent } = known.get(nameOf(slice)) ?? { served: 0, spent: true };
      return { away: spent, share: { slice, served: Math.max(served, this.level), spent: false } };
    });
    shares.sort((a, b) => Number(b.away) - Number(a.away));
    this.shares = shares.map(({ share }) => share);
  }
}

function nameOf({ queue, tenantId }: { queue: string; tenantId: string }): string {
  return `${queue}\n${tenantId}`;
}

/** What was claimed lies behind us: the next claim need not walk over it again. */
function passHead(slice: Slice, claimed: Lease[]): void {
  if (slice.ageing) return;
  let last: Lease | undefined;
  for (const lease of claimed) {
    if (!last || lease.priority < last.priority) last = lease;
    else if (lease.priority === last.priority && lease.readySince > last.readySince) last = lease;
  }
  if (!last) return;
  slice.headRank = -last.priority;
  // To the millisecond below: a little too early only means a few entries more.
  slice.headReadyAt = new Date(Math.floor(last.readySince * 1000)).toISOString();
  slice.headJobId = NIL_ID;
}
