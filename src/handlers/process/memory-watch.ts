import { proportionalKb, readProcesses, residentKb } from "./proc.js";

const LOOK_MS = 250;
/** Looking may take this part of the time at most, however many processes the machine has. */
const SHARE = 1 / 20;

interface Watched {
  limitKb: number;
  onExceeded(usedKb: number): void;
}

/**
 * Looks at what running children hold in memory, those they started included: everything in the session that each
 * child leads. One timer for all. Where there is no /proc it sees nothing.
 */
export class MemoryWatch {
  private readonly watched = new Map<number, Watched>();
  private timer: NodeJS.Timeout | undefined;

  /** Watches until the returned function is called. */
  watch(pid: number, limitKb: number, onExceeded: (usedKb: number) => void): () => void {
    this.watched.set(pid, { limitKb, onExceeded });
    this.timer ??= setTimeout(() => this.look(), LOOK_MS).unref();
    return () => void this.watched.delete(pid);
  }

  private look(): void {
    this.timer = undefined;
    if (this.watched.size === 0) return;
    const startedAt = performance.now();
    for (const [session, members] of this.members()) {
      const { limitKb, onExceeded } = this.watched.get(session) as Watched;
      if (sum(members, residentKb) <= limitKb) continue;
      // Forked copies share most of their memory; counting it once each would punish a pool of workers.
      const usedKb = sum(members, proportionalKb) || sum(members, residentKb);
      if (usedKb > limitKb) onExceeded(usedKb);
    }
    const tookMs = performance.now() - startedAt;
    this.timer = setTimeout(() => this.look(), Math.max(LOOK_MS, tookMs / SHARE)).unref();
  }

  private members(): Map<number, number[]> {
    const found = new Map<number, number[]>();
    for (const { pid, session } of readProcesses()) {
      if (!this.watched.has(session)) continue;
      const members = found.get(session);
      if (members) members.push(pid);
      else found.set(session, [pid]);
    }
    return found;
  }
}

function sum(pids: number[], measure: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + measure(pid), 0);
}
