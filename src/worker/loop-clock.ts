/** The pulse of the event loop in memory that the renewal thread shares: a blocked loop cannot be asked. */
export class LoopClock {
  private readonly cells: Float64Array;

  constructor(readonly memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)) {
    this.cells = new Float64Array(memory);
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
}
