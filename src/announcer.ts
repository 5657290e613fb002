import type { Announcement, Dispatcher } from "./core/dispatch.js";
import type { NewJob, Outcome } from "./store/new-job.js";

/** Announces submitted jobs without making the submitter wait; a broker that does not answer costs only time. */
export class Announcer {
  private readonly underWay = new Set<Promise<void>>();

  constructor(private readonly dispatcher: Dispatcher) {}

  announce(jobs: NewJob[], outcomes: Outcome[]): void {
    const created = jobs.filter((_, index) => isCreated(outcomes[index]));
    if (created.length === 0) return;
    const sent = this.dispatcher.announce(created.map(toAnnouncement)).catch(() => {});
    this.underWay.add(sent);
    void sent.finally(() => this.underWay.delete(sent));
  }

  async settled(): Promise<void> {
    await Promise.all(this.underWay);
  }
}

function isCreated(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && "created" in outcome && outcome.created;
}

function toAnnouncement({ jobId, queue, priority, runAfter = 0 }: NewJob): Announcement {
  const delayMs =
    typeof runAfter === "number" ? runAfter * 1000 : Math.max(0, runAfter.getTime() - Date.now());
  return { jobId, queue, priority, delayMs, attemptCount: 0 };
}
