import type { Database } from "../store/database.js";
import { jobVersions } from "../store/watch.js";
import type { Follower } from "./follower.js";
import { type Snapshot, takeSnapshot } from "./snapshot.js";

const LOOK_EVERY_MS = 250;
/** While the database does not answer. */
const LOOK_LATER_MS = 1_000;
const BEAT_EVERY_MS = 15_000;
const JOBS_PER_LOOK = 1_000;

interface Watch {
  followers: Set<Follower>;
  snapshot: Snapshot | undefined;
  lastSeq: number;
}

/**
 * Looks at the jobs that somebody follows: all of them in one statement, however many follow. A job that ends sends
 * no notification, because notifications serialise commits, so there is nothing to listen to.
 */
export class Followers {
  private readonly watches = new Map<string, Watch>();
  private looking: NodeJS.Timeout | undefined;
  private readonly beating: NodeJS.Timeout;
  private closed = false;

  constructor(private readonly db: Database) {
    this.beating = setInterval(() => this.each((follower) => follower.beat()), BEAT_EVERY_MS).unref();
  }

  /** From now on the follower hears of the job; that it may is the caller's business. */
  join(jobId: string, follower: Follower): () => void {
    const watch = this.watches.get(jobId) ?? { followers: new Set(), snapshot: undefined, lastSeq: 0 };
    this.watches.set(jobId, watch);
    watch.followers.add(follower);
    if (watch.snapshot) void follower.tell(watch.snapshot);
    this.lookIn(0);
    return () => {
      watch.followers.delete(follower);
      if (watch.followers.size === 0) this.watches.delete(jobId);
    };
  }

  /** How many jobs are watched. */
  get size(): number {
    return this.watches.size;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.looking);
    clearInterval(this.beating);
    this.each((follower) => follower.leave());
    this.watches.clear();
  }

  private each(act: (follower: Follower) => void): void {
    for (const { followers } of this.watches.values()) for (const follower of followers) act(follower);
  }

  private lookIn(ms: number): void {
    if (this.closed) return;
    clearTimeout(this.looking);
    this.looking = setTimeout(() => void this.look(), ms);
  }

  private async look(): Promise<void> {
    let next = LOOK_EVERY_MS;
    try {
      const ids = [...this.watches.keys()];
      for (let at = 0; at < ids.length; at += JOBS_PER_LOOK)
        await this.lookAt(ids.slice(at, at + JOBS_PER_LOOK));
    } catch {
      next = LOOK_LATER_MS;
    }
    if (this.watches.size > 0) this.lookIn(next);
  }

  private async lookAt(ids: string[]): Promise<void> {
    // What is followed was looked up for each follower's own token first.
    const versions = await this.db.asEveryTenant((db) => jobVersions(db, ids));
    for (const seen of versions) {
      const watch = this.watches.get(seen.jobId);
      if (!watch) continue;
      const { snapshot } = watch;
      if (snapshot?.version === seen.version && watch.lastSeq === seen.lastSeq) continue;
      watch.snapshot = await this.db.asEveryTenant((db) => takeSnapshot(db, seen, snapshot));
      watch.lastSeq = seen.lastSeq;
      for (const follower of watch.followers) void follower.tell(watch.snapshot);
    }
  }
}
