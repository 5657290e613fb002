/** So much work, by what attempts took of late, may lie ahead in a child's pipe; and so many characters. */
const AHEAD_MS = 20;
const AHEAD_LENGTH = 65_536;
/** What attempts are thought to take until some have shown it. */
const UNKNOWN_MS = 1000;
const WEIGHT = 0.2;

/** How far ahead of its answers a child is given requests: not at all while its attempts are long. */
export class Pace {
  /** The most that the child takes: none until it says otherwise. */
  ahead = 0;
  private averageMs = UNKNOWN_MS;
  private filling = true;

  /** An attempt took so long. */
  note(ms: number): void {
    this.averageMs += (ms - this.averageMs) * WEIGHT;
  }

  /** What lay ahead lay there too long. */
  slowDown(): void {
    this.averageMs = UNKNOWN_MS;
  }

  /** Whether a request may be written behind so many. It fills up, then waits for half of it to be used. */
  hasRoom(count: number, length: number): boolean {
    const most = Math.min(this.ahead, Math.floor(AHEAD_MS / Math.max(0.01, this.averageMs)));
    if (count > most) this.filling = false;
    else if (count <= most / 2) this.filling = true;
    if (!this.filling || count > most) return false;
    // As if the others were as long: a long request is written only behind few.
    return length * (count + 1) <= AHEAD_LENGTH;
  }
}
