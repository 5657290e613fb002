/**
 * Memory that the event loop and the renewal thread share, so that the thread can tell that the loop is blocked and
 * which attempts are past their time: a blocked loop cannot be asked. One cell for the loop's pulse, and per slot
 * one for the end of its attempt and one for what follows.
 */
export class LoopClock {
  private readonly cells: Float64Array;

  constructor(readonly memory: SharedArrayBuffer) {
    this.cells = new Float64Array(memory);
  }

  static forSlots(count: number): LoopClock {
    return new LoopClock(new SharedArrayBuffer((1 + 2 * count) * Float64Array.BYTES_PER_ELEMENT));
  }

  /** Threads count from different starts; this is the same moment in all of them, and it never goes back. */
  static now(): number {
    return performance.timeOrigin + performance.now();
  }

  beat(): void {
    this.cells[0] = LoopClock.now();
  }

  get pulse(): number {
    return this.cells[0] ?? 0;
  }

  /** The attempt in the slot may run until `endsAt`; then comes a retry after the delay, or the end if there is none. */
  start(slot: number, endsAt: number, retryDelaySeconds: number | undefined): void {
    this.cells[1 + 2 * slot] = endsAt;
    this.cells[2 + 2 * slot] = retryDelaySeconds ?? -1;
  }

  clear(slot: number): void {
    this.cells[1 + 2 * slot] = 0;
  }

  /** What was said with `start`; undefined while the attempt has not started. */
  read(slot: number): { endsAt: number; retryDelaySeconds: number | undefined } | undefined {
    const endsAt = this.cells[1 + 2 * slot] ?? 0;
    const delay = this.cells[2 + 2 * slot] ?? -1;
    return endsAt === 0 ? undefined : { endsAt, retryDelaySeconds: delay < 0 ? undefined : delay };
  }
}
