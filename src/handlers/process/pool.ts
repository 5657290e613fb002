import type { JsonValue } from "../../core/json.js";
import type { JobDefinition } from "../define.js";
import type { Launcher } from "./launcher.js";
import { LineChild } from "./line-child.js";
import type { Task } from "./task.js";
import { notBegun, Turn } from "./turn.js";

/** The children of one job type that speak lines: started on demand, up to a number, ended when idle. */
export class Pool {
  private readonly children = new Set<LineChild>();
  /** The one that worked last is the next to work, so that those not needed stay idle. */
  private readonly idle: LineChild[] = [];
  private readonly waiting: Turn[] = [];
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
    for (let place: "last" | "first" = "last"; ; place = "first") {
      if (task.clock.stopError) throw task.clock.stopError;
      const turn = new Turn(task);
      this.wait([turn], place);
      await task.clock.waitFor(turn.begun);
      try {
        return await turn.result;
      } catch (error) {
        if (error !== notBegun) throw error;
        turn.log = undefined;
      } finally {
        if (turn.log) await turn.log.keep(task.context);
      }
    }
  }

  /** No child of it works any more; the launcher sees to those that are idle. */
  close(): void {
    clearTimeout(this.idleTimer);
  }

  private wait(turns: Turn[], place: "last" | "first"): void {
    for (const turn of turns) {
      turn.onStop = () => {
        this.waiting.splice(this.waiting.indexOf(turn), 1);
        turn.refuse(turn.stopError);
      };
    }
    if (place === "first") this.waiting.unshift(...turns);
    else this.waiting.push(...turns);
    this.deal();
  }

  /** Gives those who wait to children, as long as there are any to give them to. */
  private deal(): void {
    for (let turn = this.waiting[0]; turn; turn = this.waiting[0]) {
      try {
        const child = this.childFor(turn);
        if (!child) return;
        child.take(turn);
      } catch (error) {
        turn.refuse(error);
      }
      this.waiting.shift();
    }
  }

  /** One that has nothing to do, else a new one, else one that takes requests ahead. */
  private childFor(turn: Turn): LineChild | undefined {
    const idle = this.takeIdle();
    if (idle) return idle;
    if (this.children.size < this.size) return this.start();
    let best: LineChild | undefined;
    for (const child of this.children) {
      if (child.takesAhead(turn) && child.load < (best?.load ?? Number.POSITIVE_INFINITY)) best = child;
    }
    return best;
  }

  /** One that just died is still in the list until the last of its group is gone. */
  private takeIdle(): LineChild | undefined {
    for (let child = this.idle.pop(); child; child = this.idle.pop()) if (child.free) return child;
    return undefined;
  }

  private start(): LineChild {
    const child = new LineChild(this.definition, this.launcher, this.warm, {
      onRoom: () => this.release(child),
      onReturned: (turns) => this.takeBack(turns),
      onGone: () => this.forget(child),
    });
    this.children.add(child);
    return child;
  }

  private release(child: LineChild): void {
    if (child.free && !this.idle.includes(child)) {
      this.idle.push(child);
      this.idleTimer ??= setTimeout(() => this.endIdle(), this.idleMs).unref();
    }
    this.deal();
  }

  private takeBack(turns: Turn[]): void {
    for (const turn of turns) if (turn.stopError) turn.refuse(turn.stopError);
    this.wait(
      turns.filter(({ stopError }) => !stopError),
      "first",
    );
  }

  private forget(child: LineChild): void {
    this.children.delete(child);
    const place = this.idle.indexOf(child);
    if (place !== -1) this.idle.splice(place, 1);
    this.deal();
  }

  private endIdle(): void {
    const now = performance.now();
    while (this.idle[0] && now - this.idle[0].idleSince >= this.idleMs) this.idle.shift()?.end();
    const oldest = this.idle[0];
    const nextMs = oldest ? this.idleMs - (now - oldest.idleSince) : undefined;
    this.idleTimer = nextMs === undefined ? undefined : setTimeout(() => this.endIdle(), nextMs).unref();
  }
}
