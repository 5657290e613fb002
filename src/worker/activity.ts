import { foundFailures, noActivity } from "../core/activity.js";
import type { WorkerEvent } from "../core/events.js";
import { addTo, countIn } from "../core/histogram.js";
import type { Lease } from "../core/job.js";
import { type ActivityRow, recordActivity, SLOT_SECONDS } from "../store/activity.js";
import type { Database } from "../store/database.js";

const WRITE_EVERY_MS = 5_000;
/** How often what is old is removed, in writes. */
const FORGET_EVERY = 100;

/**
 * Counts what this worker does, for everybody who looks at the installation: throughput, failures, waiting and
 * running times. Only figures: what a crash takes with it are the last seconds of them.
 */
export class ActivityRecorder {
  private readonly rows = new Map<string, ActivityRow>();
  /** The rows last counted in: a tenant's and everybody's. */
  private latest: [ActivityRow, ActivityRow] | undefined;
  private readonly timer: NodeJS.Timeout;
  /** Seconds to add to this machine's clock to get the database's. */
  private offset: number | undefined;
  private writes = 0;
  private dirty = true;

  constructor(
    private readonly db: Database,
    private readonly workerId: string,
  ) {
    this.timer = setInterval(() => void this.write(), WRITE_EVERY_MS).unref();
  }

  hear(event: WorkerEvent): void {
    if (event.event === "job.started") this.started(event.lease);
    if (event.event !== "job.settled") return;
    const { outcome, lease, seconds } = event;
    if (outcome.kind === "retryable" || outcome.kind === "terminal") this.failed(lease, outcome.error.code);
    for (const { counts } of this.rowsOf(lease.tenantId)) {
      if (outcome.kind === "succeeded") counts.succeeded++;
      countIn(counts.run, seconds);
    }
  }

  /** Writes the rest. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  private started(lease: Lease): void {
    // How long a job waited is not to be known where an attempt before it vanished.
    if (foundFailures.has(lease.lastError)) this.failed(lease, lease.lastError ?? "");
    else if (this.offset !== undefined) {
      const waited = Date.now() / 1000 + this.offset - lease.readySince;
      for (const { counts } of this.rowsOf(lease.tenantId)) countIn(counts.wait, waited);
    }
  }

  private failed({ tenantId }: Lease, code: string): void {
    for (const { counts } of this.rowsOf(tenantId)) addTo(counts.failed, { [code]: 1 });
  }

  /** Where to count now: for the tenant, and for all together. */
  private rowsOf(tenantId: string): [ActivityRow, ActivityRow] {
    this.dirty = true;
    const now = Date.now() / 1000 + (this.offset ?? 0);
    const slot = Math.floor(now / SLOT_SECONDS) * SLOT_SECONDS;
    // Mostly the same tenant as a moment ago.
    if (this.latest?.[0].slot !== slot || this.latest[0].tenantId !== tenantId)
      this.latest = [this.row(slot, tenantId), this.row(slot, "")];
    return this.latest;
  }

  private row(slot: number, tenantId: string): ActivityRow {
    const key = `${slot} ${tenantId}`;
    const row = this.rows.get(key) ?? { tenantId, slot, counts: noActivity() };
    this.rows.set(key, row);
    return row;
  }

  private async write(): Promise<void> {
    if (!this.dirty) return;
    this.dirty = false;
    const rows = [...this.rows.values()];
    const before = Date.now() / 1000;
    try {
      const now = await recordActivity(this.db, this.workerId, rows, this.writes++ % FORGET_EVERY === 0);
      this.offset = now - (before + Date.now() / 1000) / 2;
      // What has passed will not change any more.
      for (const [key, { slot }] of this.rows) if (slot < now - 2 * SLOT_SECONDS) this.rows.delete(key);
    } catch {
      // The database is away, which the worker itself reports; the figures are written with the next ones.
      this.dirty = true;
    }
  }
}
