/** What travels between the driver and a contestant process. */
export interface Envelope {
  type: string;
  data: unknown;
}

interface Waiter {
  type: string;
  timer: NodeJS.Timeout;
  resolve(data: unknown): void;
  reject(error: Error): void;
}

/** Messages of one child: taken in order by type, and failed all at once when the child fails. */
export class Inbox {
  readonly latest = new Map<string, unknown>();
  #waiting: Waiter[] = [];
  #stored: Envelope[] = [];
  #failure: string | undefined;

  put(message: Envelope): void {
    if (message.type === "error") {
      this.fail(String(message.data));
      return;
    }
    this.latest.set(message.type, message.data);
    const waiter = this.#waiting.find((other) => other.type === message.type);
    if (waiter) this.#release(waiter).resolve(message.data);
    // Counters come by the thousand and are read through `latest`; keeping them all would only cost memory.
    else if (message.type !== "progress") this.#stored.push(message);
  }

  fail(why: string): void {
    this.#failure ??= why;
    for (const waiter of [...this.#waiting]) this.#release(waiter).reject(new Error(this.#failure));
  }

  failed(): boolean {
    return this.#failure !== undefined;
  }

  take(type: string, timeoutMs: number): Promise<unknown> {
    const at = this.#stored.findIndex((message) => message.type === type);
    if (at >= 0) return Promise.resolve(this.#stored.splice(at, 1)[0]?.data);
    if (this.#failure !== undefined) return Promise.reject(new Error(this.#failure));
    return new Promise((resolve, reject) => {
      const late = () => this.#release(waiter).reject(new Error(`no '${type}' within ${timeoutMs / 1000} s`));
      const waiter: Waiter = { type, timer: setTimeout(late, timeoutMs), resolve, reject };
      this.#waiting.push(waiter);
    });
  }

  #release(waiter: Waiter): Waiter {
    clearTimeout(waiter.timer);
    this.#waiting = this.#waiting.filter((other) => other !== waiter);
    return waiter;
  }
}
