import type { WorkerEventListener } from "../core/events.js";
import type { Database } from "../store/database.js";
import { pruneNext } from "../store/prune.js";
import { type Littered, vacuum } from "../store/vacuum.js";
import { Repeat } from "./repeat.js";

export interface RetentionPolicy {
  /** Undefined: for ever, but for tenants with a retention of their own. */
  retentionSeconds: number | undefined;
  keyProtectionSeconds: number;
  /** Removes bytes that the deleted jobs leave behind. */
  collectArtifacts(): Promise<unknown>;
}

const FOREVER = Number.POSITIVE_INFINITY;
/** How often to look at least whether a pass is due and nobody is at it. */
const LOOK_MS = 15_000;
/** How often to look whether tables are littered. */
const VACUUM_MS = 5_000;
/** Vacuuming is followed by a rest that is so many times as long. */
const REST = 3;

/**
 * Keeps finished jobs for as long as the policy says, and dead rows from piling up. All workers try; the database lets
 * one at a time.
 */
export class Pruner {
  private readonly pruning = new Repeat(() => this.guarded(LOOK_MS, () => this.prune()));
  private readonly vacuuming = new Repeat(() => this.guarded(VACUUM_MS, () => this.vacuum()));
  /** Since it was last vacuumed. */
  private deleted = 0;

  constructor(
    private readonly db: Database,
    private readonly policy: RetentionPolicy,
    private readonly options: { workerId: string; emit: WorkerEventListener },
    private readonly guard: (work: () => Promise<void>) => Promise<unknown>,
  ) {}

  start(): void {
    this.pruning.start(0);
    this.vacuuming.start(VACUUM_MS);
  }

  async stop(): Promise<void> {
    await Promise.all([this.pruning.stop(), this.vacuuming.stop()]);
  }

  private async guarded(otherwiseMs: number, work: () => Promise<number>): Promise<number> {
    let nextMs = otherwiseMs;
    await this.guard(async () => {
      nextMs = await work();
    });
    return nextMs;
  }

  /** One batch. Where there was something to delete it goes on at once, else it rests as long as it took. */
  private async prune(): Promise<number> {
    const { retentionSeconds = FOREVER } = this.policy;
    // A hundredth of the time is exact enough, and a pass over everything is not free.
    const pauseSeconds = Math.min(3600, Math.max(1, retentionSeconds / 100));
    const pauseMs = Math.min(LOOK_MS, pauseSeconds * 1000);
    const began = performance.now();
    const step = await pruneNext(this.db, { ...this.policy, pauseSeconds });
    if (step === undefined) return pauseMs;
    this.deleted += step.deleted;
    if (step.passDeleted === undefined) return step.deleted > 0 ? 0 : performance.now() - began;
    if (step.passDeleted > 0) await this.endPass(step.passDeleted);
    return pauseMs;
  }

  private async endPass(jobs: number): Promise<void> {
    const { workerId, emit } = this.options;
    emit({ event: "jobs.pruned", workerId, jobs });
    await this.policy.collectArtifacts();
  }

  private async vacuum(): Promise<number> {
    const littered: Littered[] = this.deleted > 0 ? ["by jobs", "by pruning"] : ["by jobs"];
    this.deleted = 0;
    const began = performance.now();
    for (const one of littered) await vacuum(this.db, one);
    return Math.max(VACUUM_MS, REST * (performance.now() - began));
  }
}
