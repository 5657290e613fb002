import type { Lease } from "../core/job.js";
import { type Claim, claim, type HandlerVersions, type Slice } from "../store/claim.js";
import type { Database } from "../store/database.js";
import { discover } from "../store/discover.js";
import { divide, type Share } from "./share.js";

/** How many tenants of a queue one look-round visits; the next one goes on where it ended. */
const TENANTS_PER_LOOK = 64;
/** Where nothing can be had from those visited, so many look-rounds follow each other. */
const LOOKS_AT_ONCE = 16;
/** Looks round at least this often while jobs flow. */
const LOOK_EVERY_MS = 100;
/** How many times as long as it takes a look rests, so that looks take a sixth of the time at most. */
const REST = 5;
/** After news that a claim did not find: it may be of a tenant who is not in the set, and who must not wait. */
const SHORT_REST = 1;
const NIL_ID = "00000000-0000-0000-0000-000000000000";
const NOTHING: Claim = { claimId: "", leases: [] };

export interface ClaimerOptions {
  workerId: string;
  queues: string[];
  /** Only this tenant's jobs; left out, everybody's. */
  tenant?: string | undefined;
  leaseSeconds: number;
  versions: HandlerVersions;
}

/** How much of a share's slice a claim asked for; a look may replace the slice meanwhile. */
interface Asked {
  share: Share;
  slice: Slice;
  quota: number;
}

/** What is to be looked at before it is certain that nothing is ready. */
interface Unseen {
  rounds: number;
  looks: number;
  /** How many times as long as a look takes it may rest before. */
  rest: number;
}

/**
 * Decides from which tenants' slices to claim: by weight, from a set of tenants that it looks up now and then. A
 * queue with more tenants than one look shows is visited set by set, each until everybody in it had its share.
 * What it remembers are hints: a slice's head lets claims start behind entries that are dead but not yet
 * removable, and a look-round corrects it. Claims and looks may be made at the same time, but one of each.
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
  /** Something may have become ready since the last claim began. */
  private heard = false;
  private unseen: Unseen = { rounds: 1, looks: LOOKS_AT_ONCE, rest: REST };
  /** Those that had jobs since the last look began, which may not have seen them. */
  private readonly fresh = new Set<Share>();

  constructor(
    private readonly db: Database,
    private readonly options: ClaimerOptions,
  ) {}

  /** Something has become ready, most likely for one of the set. */
  nudge(): void {
    this.heard = true;
  }

  /** Something may be ready that no claim from the set would find: a new tenant, a higher priority, a late commit. */
  doubt(rest = SHORT_REST): void {
    this.unseen = {
      rounds: this.more.size > 0 ? 2 : 1,
      looks: LOOKS_AT_ONCE,
      rest: Math.min(rest, this.unseen.rest),
    };
  }

  /** Whether a claim is worth its statement. */
  get promising(): boolean {
    return (this.heard && this.shares.length > 0) || this.owed() > 0;
  }

  /**
   * How long to rest before the next look, as many times as the last one took; undefined: no look is needed, all that
   * is ready is known. A set of several is not left before everybody in it had its share.
   */
  get restBeforeLook(): number | undefined {
    const { rounds, looks, rest } = this.unseen;
    if (rounds === 0 || looks === 0) return undefined;
    if (this.visitTo === undefined && this.more.size === 0) return rest;
    return this.owed() > 0 ? undefined : 0;
  }

  /** Looks where that is due or nothing is known to be ready, then claims: for whoever has nothing better to do. */
  async take(want: number): Promise<Claim> {
    if (!this.promising) this.doubt(REST);
    for (;;) {
      if (this.restBeforeLook !== undefined) await this.look(want);
      const taken = await this.claim(want);
      if (taken.leases.length > 0 || this.restBeforeLook === undefined) return taken;
    }
  }

  /** Claims from those who are known to have jobs. */
  async claim(want: number): Promise<Claim> {
    const { workerId, leaseSeconds, versions } = this.options;
    const { heard } = this;
    if (heard) {
      this.heard = false;
      // Most likely it is for one of those who had nothing left.
      for (const share of this.shares) share.spent = false;
    }
    const open = this.shares.filter(({ spent }) => !spent);
    const quotas = divide(open, Math.min(want, this.owed())).map(({ share, jobs }) => {
      return { share, slice: share.slice, quota: jobs };
    });
    const taken =
      quotas.length > 0 ? await claim(this.db, { workerId, leaseSeconds, versions, quotas }) : NOTHING;
    this.note(quotas, taken);
    if (heard) this.doubt(taken.leases.length > 0 ? REST : SHORT_REST);
    // Each such claim moved jobs out of the way, or left one less to ask, so this ends.
    return taken.leases.length === 0 && this.promising ? this.claim(want) : taken;
  }

  /** How many jobs the set may have before the next one's turn. */
  private owed(): number {
    const { visitTo = Number.POSITIVE_INFINITY } = this;
    return this.shares.reduce((sum, { slice, served, spent }) => {
      return spent ? sum : sum + Math.max(0, Math.ceil((visitTo - served) * slice.weight));
    }, 0);
  }

  private note(asked: Asked[], { leases, parked }: Claim): void {
    const claimed = groupBySlice(asked, leases);
    for (const { share, slice, quota } of asked) {
      const got = claimed.get(nameOf(slice)) ?? [];
      share.served += got.length / slice.weight;
      passHead(slice, got);
      if (got.length > 0) this.fresh.add(share);
      // What a look has shown since then is not known to be claimed.
      if (share.slice === slice) share.spent = got.length < quota && !parked;
    }
    const waiting = this.shares.filter(({ spent }) => !spent).map(({ served }) => served);
    if (waiting.length > 0) this.level = Math.max(this.level, Math.min(...waiting));
    const full = leases.length === asked.reduce((sum, { quota }) => sum + quota, 0);
    const late = performance.now() - this.lookedAt > LOOK_EVERY_MS;
    if (leases.length > 0 && (!full || late || this.visitTo !== undefined)) this.doubt(REST);
  }

  /** Looks up the next set of tenants to claim from. */
  async look(want: number): Promise<void> {
    const { queues, versions, tenant } = this.options;
    const { more: after, unseen } = this;
    unseen.rest = REST;
    this.fresh.clear();
    const found = await discover(this.db, { queues, versions, tenant, after, limit: TENANTS_PER_LOOK });
    this.lookedAt = performance.now();
    unseen.looks--;
    if (found.more.size === 0) unseen.rounds--;
    this.more = found.more;
    this.visitTo = undefined;
    if (found.slices.length === 0) {
      // Where the heads were is worth remembering: the next job most likely comes behind one of them.
      for (const share of this.shares) share.spent ||= !this.fresh.has(share);
    } else if (after.size + found.more.size > 0) this.visit(found.slices, want);
    else this.adopt(found.slices);
  }

  private visit(slices: Slice[], want: number): void {
    const weights = slices.reduce((sum, { weight }) => sum + weight, 0);
    this.shares = slices.map((slice) => ({ slice, served: 0, spent: false }));
    this.level = 0;
    this.visitTo = Math.max(1, Math.floor(want / weights));
  }

  /** Who was away comes first, but has saved nothing up. */
  private adopt(slices: Slice[]): void {
    const known = new Map(this.shares.map((share) => [nameOf(share.slice), share]));
    const returned: Share[] = [];
    const stayed: Share[] = [];
    for (const slice of slices) {
      const share = known.get(nameOf(slice)) ?? { slice, served: 0, spent: true };
      known.delete(nameOf(slice));
      (share.spent ? returned : stayed).push(share);
      share.slice = slice;
      share.served = Math.max(share.served, this.level);
      share.spent = false;
    }
    const unseen = [...known.values()].filter((share) => this.fresh.has(share));
    this.shares = [...returned, ...stayed, ...unseen];
  }
}

function nameOf({ queue, tenantId }: { queue: string; tenantId: string }): string {
  return `${queue}\n${tenantId}`;
}

/** By the slices' names. */
function groupBySlice(asked: Asked[], leases: Lease[]): Map<string, Lease[]> {
  const [only] = asked;
  // Mostly one slice is asked; a name made for each lease would be a good part of a short job.
  if (only && asked.length === 1) return new Map([[nameOf(only.slice), leases]]);
  const groups = new Map<string, Lease[]>();
  for (const lease of leases) {
    const name = nameOf(lease);
    const others = groups.get(name);
    if (others) others.push(lease);
    else groups.set(name, [lease]);
  }
  return groups;
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
