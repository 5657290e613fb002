import type { Database } from "../store/database.js";
import { enqueueEach } from "../store/enqueue.js";
import type { Enqueued, NewJob } from "../store/new-job.js";
import { Submissions } from "../submissions.js";

/** Single submissions by way of the API: those of one tenant share a transaction, which acts for no other. */
export class TenantSubmissions {
  private readonly byTenant = new Map<string, Submissions>();

  constructor(private readonly db: Database) {}

  add(job: NewJob): Promise<Enqueued> {
    const { tenantId } = job;
    const own =
      this.byTenant.get(tenantId) ??
      new Submissions(
        (jobs) => this.db.asTenant(tenantId, (db) => enqueueEach(db, jobs)),
        () => this.byTenant.delete(tenantId),
      );
    this.byTenant.set(tenantId, own);
    return own.add(job);
  }
}
