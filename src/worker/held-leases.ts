import { type HeldLease, LeasePage, PAGE_SLOTS } from "./lease-page.js";

/** What the renewal thread knows of a slot's lease beside what the event loop has written there. */
interface Note {
  turn: number;
  /** Undefined: it is lost or ended, and only waits for the loop to drop it. */
  renewedAt: number | undefined;
}

/** The leases of this process as the renewal thread sees them. */
export class HeldLeases {
  private readonly pages: LeasePage[] = [];
  private readonly notes = new Map<number, Note>();

  addPage(memory: SharedArrayBuffer): void {
    this.pages.push(new LeasePage(memory));
  }

  /** Each with the moment at which it was last known to hold. */
  all(): (HeldLease & { renewedAt: number })[] {
    const found: (HeldLease & { renewedAt: number })[] = [];
    for (const [number, page] of this.pages.entries()) {
      for (let at = 0; at < PAGE_SLOTS; at++) {
        const lease = page.read(at);
        if (!lease) continue;
        const slot = number * PAGE_SLOTS + at;
        const note = this.notes.get(slot);
        const renewedAt = note?.turn === lease.turn ? note.renewedAt : lease.takenAt;
        if (renewedAt !== undefined) found.push({ ...lease, slot, renewedAt });
      }
    }
    return found;
  }

  renewed({ slot, turn }: HeldLease, renewedAt: number): void {
    this.notes.set(slot, { turn, renewedAt });
  }

  /** Not ours any more. False: the loop has dropped it meanwhile. */
  giveUp({ slot, turn }: HeldLease): boolean {
    this.notes.set(slot, { turn, renewedAt: undefined });
    const page = this.pages[Math.floor(slot / PAGE_SLOTS)];
    return page?.read(slot % PAGE_SLOTS)?.turn === turn;
  }
}
