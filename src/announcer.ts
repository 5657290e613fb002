import type { Announcement, Dispatcher } from "./core/dispatch.js";
import type { Enqueued, NewJob } from "./store/enqueue.js";

/** Announces submitted jobs without making the submitter wait; a broker that does not answer costs only time. */
export class Announcer {
  private readonly underWay = new Set<Promise<void>>();

  constructor(private readonly dispatcher: Dispatcher) {}

  announce(jobs: NewJob[], enqueued: Enqueued[]): void {
    const created = jobs.filter((_, index) => enqueued[index]?.created);
    if (created.length === 0) return;
    const sent = this.dispatcher.announce(created.map(toAnnouncement)).catch(() => {});
    this.underWay.add(sent);
    void sent.finally(() => this.underWay.delete(sent));
  }

  async settled(): Promise<void> {
    await Promise.all(this.underWay);
  }
}

function toAnnouncement({ jobId, queue, priority, runAfter = 0 }: NewJob): Announcement {
  const delayMs =
    typeof runAfter === "number" ? runAfter * 1000 : Math.max(0, runAfter.getTime() - Date.now());
  return { jobId, queue, priority, delayMs, attemptCount: 0 };
}
