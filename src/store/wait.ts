import { OracleError } from "../core/errors.js";
import type { Job } from "../core/job.js";
import { isFinished } from "../core/states.js";
import type { Database } from "./database.js";
import { isTransient } from "./database-errors.js";
import { getJobs } from "./read.js";

const FIRST_LOOK_MS = 10;
const SLOWEST_LOOK_MS = 500;
const JOBS_PER_LOOK = 1000;

interface Watch {
  endsAt: number;
  resolve(job: Job | undefined): void;
  reject(error: unknown): void;
}

/**
 * Waits for jobs to finish. All waits of a connection share one look at the database, soon after something
 * new is waited for and then ever less often; a finished job sends no notification, because notifications
 * serialise commits.
 */
export class Waiter {
  private readonly watches = new Map<string, Watch[]>();
  private timer: NodeJS.Timeout | undefined;
  private delayMs = FIRST_LOOK_MS;

  constructor(private readonly db: Database) {}

  /** The finished job, or undefined when the time is up. */
  finished(jobId: string, timeoutSeconds: number): Promise<Job | undefined> {
    if (typeof timeoutSeconds !== "number" || !(timeoutSeconds >= 0)) {
      const message = `timeoutSeconds is ${String(timeoutSeconds)}; it must be a number of seconds, 0 or more.`;
      throw new OracleError("INVALID_ARGUMENT", message, { field: "timeoutSeconds" });
    }
    return new Promise((resolve, reject) => {
      const watch = { endsAt: performance.now() + timeoutSeconds * 1000, resolve, reject };
      this.watches.set(jobId, [...(this.watches.get(jobId) ?? []), watch]);
      this.delayMs = FIRST_LOOK_MS;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.look(), 0);
    });
  }

  private async look(): Promise<void> {
    try {
      const ids = [...this.watches.keys()];
      for (let at = 0; at < ids.length; at += JOBS_PER_LOOK) {
        const jobs = await getJobs(this.db, ids.slice(at, at + JOBS_PER_LOOK));
        for (const job of jobs) if (isFinished(job.state)) this.end(job.jobId, (watch) => watch.resolve(job));
      }
    } catch (error) {
      if (!isTransient(error))
        for (const id of this.watches.keys()) this.end(id, (watch) => watch.reject(error));
    }
    this.expire();
    if (this.watches.size === 0) return;
    this.delayMs = Math.min(SLOWEST_LOOK_MS, this.delayMs * 1.3);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), this.delayMs);
  }

  private expire(): void {
    const now = performance.now();
    for (const [id, watches] of this.watches) {
      for (const watch of watches) if (now >= watch.endsAt) watch.resolve(undefined);
      const open = watches.filter((watch) => now < watch.endsAt);
      if (open.length > 0) this.watches.set(id, open);
      else this.watches.delete(id);
    }
  }

  private end(jobId: string, how: (watch: Watch) => void): void {
    const watches = this.watches.get(jobId) ?? [];
    this.watches.delete(jobId);
    for (const watch of watches) how(watch);
  }
}
