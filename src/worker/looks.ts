/**
 * When to look round: beside the claims, so that none waits for a look; one look at a time; and not all the time,
 * because under an old snapshot a look walks over every dead entry.
 */
export class Looks {
  private timer: NodeJS.Timeout | undefined;
  private dueAt = Number.POSITIVE_INFINITY;
  private endedAt = Number.NEGATIVE_INFINITY;
  private cost = 0;
  private stopped = false;
  underWay = false;

  constructor(
    /** False when it failed; whoever polls will ask again. */
    private readonly look: () => Promise<boolean>,
    private readonly onLooked: () => void,
  ) {}

  /** One is being made, or will be after its rest. */
  get owed(): boolean {
    return this.underWay || this.dueAt < Number.POSITIVE_INFINITY;
  }

  /** As soon as a rest has passed that is so many times as long as the last look was; not during one. */
  ask(rest: number): void {
    const at = this.endedAt + rest * this.cost;
    if (this.stopped || this.underWay || at >= this.dueAt) return;
    this.dueAt = at;
    clearTimeout(this.timer);
    const ms = at - performance.now();
    if (ms > 0) this.timer = setTimeout(() => void this.make(), ms);
    else void this.make();
  }

  stop(): void {
    this.stopped = true;
    this.dueAt = Number.POSITIVE_INFINITY;
    clearTimeout(this.timer);
  }

  private async make(): Promise<void> {
    this.underWay = true;
    this.dueAt = Number.POSITIVE_INFINITY;
    const startedAt = performance.now();
    const looked = await this.look();
    this.endedAt = performance.now();
    // One that took long, because the machine was busy, says little.
    this.cost = Math.min(this.endedAt - startedAt, Math.max(1, 2 * this.cost));
    this.underWay = false;
    if (looked) this.onLooked();
  }
}
