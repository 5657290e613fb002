/** Lets so many in at once, the others in the order they came. */
export class Gate {
  private readonly waiting: (() => void)[] = [];

  constructor(private free: number) {}

  /** Resolves when there is room; rejects with the signal's reason when it aborts first. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.free > 0) {
      this.free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      this.waiting.push(enter);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  leave(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
