/** Those who wait until nothing is left to do, or until it is known that this will never be. */
export class DrainWaiters {
  private readonly waiting: { resolve(): void; reject(error: Error): void }[] = [];
  private never: Error | undefined;

  get any(): boolean {
    return this.waiting.length > 0;
  }

  wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.never) reject(this.never);
      else this.waiting.push({ resolve, reject });
    });
  }

  drained(): void {
    for (const { resolve } of this.waiting.splice(0)) resolve();
  }

  /** The first reason stays. */
  giveUp(why: Error): void {
    this.never ??= why;
    for (const { reject } of this.waiting.splice(0)) reject(this.never);
  }
}
