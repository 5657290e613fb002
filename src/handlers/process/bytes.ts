/** Bytes up to a cap, in one piece: a million tiny chunks must not become a million objects. */
export class BoundedBytes {
  private bytes = Buffer.alloc(0);
  private used = 0;

  constructor(private readonly cap: number) {}

  get length(): number {
    return this.used;
  }

  /** Takes what fits; false when something did not. */
  append(chunk: Buffer): boolean {
    const taken = Math.min(chunk.length, this.cap - this.used);
    if (this.used + taken > this.bytes.length) this.grow(this.used + taken);
    chunk.copy(this.bytes, this.used, 0, taken);
    this.used += taken;
    return taken === chunk.length;
  }

  peek(): Buffer {
    return this.bytes.subarray(0, this.used);
  }

  /** Everything, leaving nothing. */
  take(): Buffer {
    const all = this.peek();
    this.bytes = Buffer.alloc(0);
    this.used = 0;
    return all;
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(this.cap, Math.max(needed, 2 * this.bytes.length, 1024)));
    this.bytes.copy(larger, 0, 0, this.used);
    this.bytes = larger;
  }
}

const NEWLINE = 0x0a;

/** Cuts what a child writes into lines; holds one unfinished line, up to the cap. */
export class Lines {
  private readonly unfinished: BoundedBytes;

  constructor(
    private readonly cap: number,
    private readonly onLine: (line: Buffer) => void,
  ) {
    this.unfinished = new BoundedBytes(cap);
  }

  /** Whether there is the beginning of a line whose end has not come. */
  get pending(): boolean {
    return this.unfinished.length > 0;
  }

  /** False when a line is longer than the cap. */
  push(chunk: Buffer): boolean {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (!this.pending && piece.length <= this.cap) this.onLine(piece);
      else if (this.unfinished.append(piece)) this.onLine(this.unfinished.take());
      else return false;
    }
    return start === chunk.length || this.unfinished.append(chunk.subarray(start));
  }
}
