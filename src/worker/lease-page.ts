/** How many leases one page has room for. */
export const PAGE_SLOTS = 1024;
const ID_BYTES = 36;
/** Per slot: when the lease was taken, when its attempt must end, and after how many seconds it is retried then. */
const CELLS = 3;

const CELL_BYTES = PAGE_SLOTS * CELLS * Float64Array.BYTES_PER_ELEMENT;
const TURN_BYTES = PAGE_SLOTS * Int32Array.BYTES_PER_ELEMENT;

/** A lease as the renewal thread finds it. */
export interface HeldLease {
  jobId: string;
  attemptId: string;
  slot: number;
  /** Which of the slot's leases this is. */
  turn: number;
  takenAt: number;
  /** Undefined: its handler has not started, or has ended. */
  endsAt: number | undefined;
  /** Undefined: it must not be retried. */
  retryDelaySeconds: number | undefined;
}

/**
 * Memory that the event loop and the renewal thread share: the leases of this process, and until when their attempts
 * may run. The loop writes, the thread reads when it renews or finds the loop blocked: messages would be dearer than
 * a short job, and a blocked loop sends none. All moments are by LoopClock.now().
 */
export class LeasePage {
  private readonly cells: Float64Array;
  /** Counts up with each take and each drop of a slot: odd while it is taken. */
  private readonly turns: Int32Array;
  private readonly ids: Buffer;

  constructor(readonly memory = new SharedArrayBuffer(CELL_BYTES + TURN_BYTES + PAGE_SLOTS * 2 * ID_BYTES)) {
    this.cells = new Float64Array(memory, 0, PAGE_SLOTS * CELLS);
    this.turns = new Int32Array(memory, CELL_BYTES, PAGE_SLOTS);
    this.ids = Buffer.from(memory, CELL_BYTES + TURN_BYTES);
  }

  take(slot: number, jobId: string, attemptId: string, now: number): void {
    this.ids.write(jobId + attemptId, slot * 2 * ID_BYTES, "latin1");
    this.cells[slot * CELLS] = now;
    this.cells[slot * CELLS + 1] = 0;
    // The last: from now on the thread reads the others.
    Atomics.add(this.turns, slot, 1);
  }

  start(slot: number, endsAt: number, retryDelaySeconds: number | undefined): void {
    this.cells[slot * CELLS + 2] = retryDelaySeconds ?? -1;
    this.cells[slot * CELLS + 1] = endsAt;
  }

  end(slot: number): void {
    this.cells[slot * CELLS + 1] = 0;
  }

  drop(slot: number): void {
    Atomics.add(this.turns, slot, 1);
  }

  /** Undefined while nothing is held there. */
  read(slot: number): HeldLease | undefined {
    const turn = Atomics.load(this.turns, slot);
    if (turn % 2 === 0) return undefined;
    const [takenAt = 0, endsAt = 0, delay = -1] = this.cells.subarray(slot * CELLS, (slot + 1) * CELLS);
    const at = slot * 2 * ID_BYTES;
    const lease = {
      jobId: this.ids.toString("latin1", at, at + ID_BYTES),
      attemptId: this.ids.toString("latin1", at + ID_BYTES, at + 2 * ID_BYTES),
      slot,
      turn,
      takenAt,
      endsAt: endsAt === 0 ? undefined : endsAt,
      retryDelaySeconds: delay < 0 ? undefined : delay,
    };
    // Otherwise the slot was handed on while it was read.
    return Atomics.load(this.turns, slot) === turn ? lease : undefined;
  }
}
