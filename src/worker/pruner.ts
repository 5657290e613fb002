import type { WorkerEventListener } from "../core/events.js";
import type { Database } from "../store/database.js";
import { pruneNext } from "../store/prune.js";

export interface RetentionPolicy {
  /** Undefined: for ever, but for tenants with a retention of their own. */
  retentionSeconds: number | undefined;
  keyProtectionSeconds: number;
  /** Removes bytes that the deleted jobs leave behind. */
  collectArtifacts(): Promise<unknown>;
}

const FOREVER = Number.POSITIVE_INFINITY;
/** Between two batches it rests as long as the last one took, but no longer than this: it must keep up with what ends. */
const REST_MS = 250;
/** How often to look whether a pass is due and nobody is at it. */
const LOOK_MS = 15_000;

/** Keeps finished jobs for as long as the policy says. All workers try; the database lets one at a time. */
export class Pruner {
  private timer: NodeJS.Timeout | undefined;
  private underWay: Promise<void> | undefined;
  private stopped = false;

  constructor(
    private readonly db: Database,
    private readonly policy: RetentionPolicy,
    private readonly options: { workerId: string; emit: WorkerEventListener },
    private readonly guard: (work: () => Promise<void>) => Promise<void>,
  ) {}

  start(): void {
    this.later(REST_MS);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.underWay;
  }

  private later(ms: number): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.underWay = this.step();
    }, ms);
  }

  private async step(): Promise<void> {
    let nextMs = LOOK_MS;
    await this.guard(async () => {
      const { retentionSeconds = FOREVER } = this.policy;
      // A hundredth of the time is exact enough, and a pass over everything is not free.
      const pauseSeconds = Math.min(3600, Math.max(1, retentionSeconds / 100));
      const startedAt = performance.now();
      const step = await pruneNext(this.db, { ...this.policy, pauseSeconds });
      if (step === undefined) return;
      if (step.passDeleted === undefined) nextMs = Math.min(REST_MS, performance.now() - startedAt);
      else if (step.passDeleted > 0) await this.endPass(step.passDeleted);
    });
    this.later(nextMs);
  }

  private async endPass(jobs: number): Promise<void> {
    const { workerId, emit } = this.options;
    emit({ event: "jobs.pruned", workerId, jobs });
    await this.policy.collectArtifacts();
  }
}
