/** Does something again and again, from `start` to `stop`, which waits for what is under way. */
export class Repeat {
  private timer: NodeJS.Timeout | undefined;
  private underWay: Promise<void> | undefined;
  private stopped = false;

  /** `work` says in how many milliseconds it is due again; it never throws. */
  constructor(private readonly work: () => Promise<number>) {}

  start(ms: number): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.underWay = this.work().then((nextMs) => this.start(nextMs));
    }, ms);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.underWay;
  }
}
