import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Lease, Outcome } from "../dist/core/job.js";
import { acquire } from "../dist/store/acquire.js";
import type { Database } from "../dist/store/database.js";
import { freeDeadWorker } from "../dist/store/free-worker.js";
import { promote } from "../dist/store/promote.js";
import { reclaim } from "../dist/store/reclaim.js";
import { settle } from "../dist/store/settle.js";
import { Claimer } from "../dist/worker/claimer.js";
import { expireLease, workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// Whatever happens to jobs with keys and caps, in whatever order: no cap is exceeded, and no job is left behind.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

const LIMITS = { solo: 1, pair: 2 } as const;
const CAP = 3;

type Step =
  | { do: "submit"; key: keyof typeof LIMITS | undefined; queue: number; priority: number }
  | { do: "claim"; queue: number; want: number }
  | { do: "settle"; pick: number; kind: "succeeded" | "retryable" | "released" | "terminal" }
  | { do: "lose" | "cancel" | "hold" | "acquire"; pick: number }
  | { do: "promote" | "sweep" | "free" };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      key: fc.constantFrom("solo" as const, "pair" as const, undefined),
      queue: fc.nat(1),
      priority: fc.nat(2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      queue: fc.nat(1),
      want: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      pick: fc.nat(),
      kind: fc.constantFrom(
        "succeeded" as const,
        "retryable" as const,
        "released" as const,
        "terminal" as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("lose", "cancel", "hold", "acquire"), pick: fc.nat() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("promote", "sweep", "free") }) },
);

const error = { code: "HANDLER_ERROR" as const, message: "m", retryable: true };
const outcomes: Record<string, Outcome> = {
  succeeded: { kind: "succeeded", resultText: "1", contentHash: "h" },
  retryable: { kind: "retryable", error, delaySeconds: 0 },
  released: { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 },
  terminal: { kind: "terminal", error },
};

/** One tenant's jobs, and the leases that somebody believes to hold. */
class World {
  readonly jobs: string[] = [];
  leases: Lease[] = [];
  constructor(readonly tenant: string) {}

  get queues(): string[] {
    return [`${this.tenant}-a`, `${this.tenant}-b`];
  }

  async submit(key: keyof typeof LIMITS | undefined, queue: number, priority: number): Promise<void> {
    const limit = key === undefined ? {} : { concurrencyKey: key, concurrencyLimit: LIMITS[key] };
    const options = {
      queue: this.queues[queue] as string,
      tenant: this.tenant,
      priority,
      maxAttempts: 50,
      ...limit,
    };
    this.jobs.push((await db.oracle.enqueue("any", this.jobs.length, options)).id);
  }

  async claim(queues: string[], want: number): Promise<number> {
    const options = { workerId: this.tenant, queues, leaseSeconds: 60, versions: {} };
    const { leases } = await new Claimer(store, options).take(want);
    this.leases.push(...leases);
    return leases.length;
  }

  async sweep(): Promise<void> {
    const request = { workerId: this.tenant, queues: this.queues, leaseSeconds: 60, versions: {}, limit: 2 };
    this.leases.push(...(await reclaim(store, request)).leases);
  }

  async settle(pick: number, kind: string): Promise<void> {
    const [lease] = this.leases.splice(pick % Math.max(1, this.leases.length), 1);
    if (lease) await settle(store, [{ lease, outcome: outcomes[kind] as Outcome }]);
  }

  async lose(jobId: string): Promise<void> {
    if ((await db.oracle.get(jobId))?.state === "RUNNING") await expireLease(db, jobId);
  }

  async acquire(jobId: string): Promise<void> {
    const answer = await acquire(store, { jobId, workerId: this.tenant, leaseSeconds: 60 });
    if (answer.won) this.leases.push(answer.lease);
  }

  async take(step: Step): Promise<void> {
    const job = "pick" in step ? this.jobs[step.pick % Math.max(1, this.jobs.length)] : undefined;
    if (step.do === "submit") return this.submit(step.key, step.queue, step.priority);
    if (step.do === "claim") return void (await this.claim([this.queues[step.queue] as string], step.want));
    if (step.do === "settle") return this.settle(step.pick, step.kind);
    if (step.do === "promote") return void (await promote(store));
    if (step.do === "sweep") return this.sweep();
    if (step.do === "free") return void (await freeDeadWorker(store, this.tenant, [], "SHUTDOWN"));
    if (job === undefined) return;
    if (step.do === "lose") return this.lose(job);
    if (step.do === "cancel") return void (await db.oracle.cancel(job).catch(() => {}));
    if (step.do === "acquire") return this.acquire(job);
    await db.sql(
      `UPDATE oracle.jobs SET hold_reason = CASE WHEN hold_reason IS NULL THEN 'x' END
       WHERE job_id = $1 AND state IN ('PENDING', 'FAILED_RETRYABLE')`,
      [job],
    );
  }

  /** The record, not the slots, says what runs. */
  async check(): Promise<void> {
    const rows = await db.sql(
      `SELECT coalesce(concurrency_key, '') AS key, count(*)::int AS running FROM oracle.jobs
       WHERE tenant_id = $1 AND state = 'RUNNING' GROUP BY 1`,
      [this.tenant],
    );
    const running = new Map(rows.map((row) => [row.key as string, row.running as number]));
    expect(running.get("solo") ?? 0).toBeLessThanOrEqual(LIMITS.solo);
    expect(running.get("pair") ?? 0).toBeLessThanOrEqual(LIMITS.pair);
    expect([...running.values()].reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(CAP);
  }

  /** Only what any worker does from now on: promote, sweep, claim, settle. */
  async drain(): Promise<void> {
    await db.sql(
      "UPDATE oracle.jobs SET hold_reason = NULL WHERE tenant_id = $1 AND hold_reason IS NOT NULL",
      [this.tenant],
    );
    for (;;) {
      for (const lease of this.leases.splice(0)) {
        await settle(store, [{ lease, outcome: outcomes.succeeded as Outcome }]);
      }
      await promote(store);
      const before = this.leases.length;
      await this.sweep();
      await this.claim(this.queues, 5);
      if (this.leases.length === before) return;
    }
  }
}

it("caps hold and every job ends, whatever happens in between", { timeout: 120_000 }, async () => {
  // An installation without limits has nothing to look after.
  expect((await promote(store)).nextInSeconds).toBeNull();
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 10, maxLength: 50 }), async (given) => {
      const world = new World(`world-${number++}`);
      await db.oracle.setTenant(world.tenant, { maxRunning: CAP });
      for (const step of given) {
        await world.take(step);
        await world.check();
      }
      await world.drain();
      const [row] = await db.sql(
        `SELECT (SELECT count(*)::int FROM oracle.jobs WHERE tenant_id = $1 AND completed_at IS NULL) AS unfinished,
           (SELECT count(*)::int FROM oracle.slots WHERE tenant_id = $1) AS slots,
           (SELECT count(*)::int FROM oracle.parked_jobs WHERE tenant_id = $1) AS parked`,
        [world.tenant],
      );
      expect(row).toEqual({ unfinished: 0, slots: 0, parked: 0 });
    }),
    { numRuns: 40 },
  );
});
