import type { JsonValue } from "../../core/json.js";
import type { JobDefinition } from "../define.js";
import type { Launcher } from "./launcher.js";
import { LineChild, notBegun } from "./line-child.js";
import { onAbort, type Task } from "./task.js";
import type { Turn } from "./turn.js";

interface Begun {
  child: LineChild;
  turn: Turn;
}

interface Waiter {
  take(child: LineChild): void;
  refuse(error: unknown): void;
}

/** The children of one job type that speak lines: started on demand, up to a number, ended when idle. */
export class Pool {
  private readonly children = new Set<LineChild>();
  /** The one that worked last is the next to work, so that those not needed stay idle. */
  private readonly idle: LineChild[] = [];
  private readonly waiting: Waiter[] = [];
  private idleTimer: NodeJS.Timeout | undefined;
  private readonly warm: boolean;
  private readonly size: number;

  constructor(
    private readonly definition: JobDefinition,
    private readonly launcher: Launcher,
    private readonly idleMs: number,
  ) {
    const { warm = 0 } = definition.process;
    this.warm = warm > 0;
    this.size = this.warm ? warm : Number.POSITIVE_INFINITY;
  }

  async run(task: Task): Promise<JsonValue> {
    for (;;) {
      const { child, turn } = this.beginIdle(task) ?? (await task.clock.waitFor(this.beginNext(task)));
      try {
        return await turn.result;
      } catch (error) {
        if (error !== notBegun) throw error;
        turn.log = undefined;
      } finally {
        this.release(child);
        await turn.log?.keep(task.context);
      }
    }
  }

  /** No child of it works any more; the launcher sees to those that are idle. */
  close(): void {
    clearTimeout(this.idleTimer);
  }

  /** One that just died is still in the list until the last of its group is gone. */
  private takeIdle(): LineChild | undefined {
    for (let child = this.idle.pop(); child; child = this.idle.pop()) if (child.free) return child;
    return undefined;
  }

  private beginIdle(task: Task): Begun | undefined {
    const idle = this.takeIdle();
    return idle && { child: idle, turn: idle.begin(task) };
  }

  /** With a new child, or the next one that has nothing to do. */
  private beginNext(task: Task): Promise<Begun> {
    const { signal } = task.context;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        // Begins at once: a child that died between being taken and beginning would leave its task waiting for ever.
        take: (child) => {
          deafen();
          resolve({ child, turn: child.begin(task) });
        },
        refuse: (error) => {
          deafen();
          reject(error);
        },
      };
      const deafen = onAbort(signal, () => {
        const place = this.waiting.indexOf(waiter);
        if (place !== -1) this.waiting.splice(place, 1);
        reject(signal.reason);
      });
      if (signal.aborted) return;
      this.waiting.push(waiter);
      this.startWaited();
    });
  }

  /** Starts children while there is room and somebody waits. */
  private startWaited(): void {
    while (this.waiting.length > 0 && this.children.size < this.size) {
      const waiter = this.waiting.shift() as Waiter;
      try {
        waiter.take(this.start());
      } catch (error) {
        waiter.refuse(error);
      }
    }
  }

  private start(): LineChild {
    const child = new LineChild(this.definition, this.launcher, this.warm, (gone) => this.forget(gone));
    this.children.add(child);
    return child;
  }

  private release(child: LineChild): void {
    if (!child.free) return;
    const waiter = this.waiting.shift();
    if (waiter) waiter.take(child);
    else {
      this.idle.push(child);
      this.idleTimer ??= setTimeout(() => this.endIdle(), this.idleMs).unref();
    }
  }

  private forget(child: LineChild): void {
    this.children.delete(child);
    const place = this.idle.indexOf(child);
    if (place !== -1) this.idle.splice(place, 1);
    this.startWaited();
  }

  private endIdle(): void {
    const now = performance.now();
    while (this.idle[0] && now - this.idle[0].idleSince >= this.idleMs) this.idle.shift()?.end();
    const oldest = this.idle[0];
    const nextMs = oldest ? this.idleMs - (now - oldest.idleSince) : undefined;
    this.idleTimer = nextMs === undefined ? undefined : setTimeout(() => this.endIdle(), nextMs).unref();
  }
}
