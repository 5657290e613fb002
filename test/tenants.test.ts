import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../dist/store/database.js";
import { discover } from "../dist/store/discover.js";
import { Claimer } from "../dist/worker/claimer.js";
import { echo, nap } from "./support/jobs.js";
import { expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

// Sharing between tenants: weights, floods, more tenants than one look shows, workers for one tenant.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let number = 0;
const newQueue = () => `tenants-${number++}`;
const newTenant = () => `tenant-${number++}`;
const claimer = (queues: string[], tenant?: string) =>
  new Claimer(store, { workerId: "w", queues, leaseSeconds: 60, versions: {}, tenant });
const fill = (queue: string, tenant: string, jobs: number) =>
  db.oracle.enqueueMany(
    "any",
    Array.from({ length: jobs }, (_, n) => n),
    { queue, tenant },
  );

/** How many jobs of each tenant the claims brought. */
async function takeFrom(taker: Claimer, claims: number, size: number): Promise<Map<string, number>> {
  const had = new Map<string, number>();
  for (let n = 0; n < claims; n++) {
    for (const { tenantId } of (await taker.take(size)).leases) {
      had.set(tenantId, (had.get(tenantId) ?? 0) + 1);
    }
  }
  return had;
}

describe("weights", () => {
  it.each([
    [200, 1],
    [60, 7],
    [4, 150],
  ])("1:3 give 1:3, in %d claims of %d", async (claims, size) => {
    const [queue, light, heavy] = [newQueue(), newTenant(), newTenant()];
    await db.oracle.setTenant(heavy, { weight: 3 });
    await fill(queue, light, 500);
    await fill(queue, heavy, 500);
    const had = await takeFrom(claimer([queue]), claims, size);
    const quarter = (claims * size) / 4;
    expect(had.get(light)).toBeGreaterThan(quarter * 0.95);
    expect(had.get(light)).toBeLessThan(quarter * 1.05);
    expect((had.get(light) ?? 0) + (had.get(heavy) ?? 0)).toBe(claims * size);
  });

  it("1:3 give 1:3 within 10 % to a real worker, while both have jobs", async () => {
    const [queue, light, heavy] = [newQueue(), newTenant(), newTenant()];
    await db.oracle.setTenant(heavy, { weight: 3 });
    for (const tenant of [light, heavy]) {
      await db.oracle.enqueueMany(
        echo,
        Array.from({ length: 10_000 }, (_, n) => ({ n })),
        { queue, tenant },
      );
    }
    const started: string[] = [];
    const worker = await db.worker({
      jobs: [echo],
      queues: [queue],
      concurrency: 10,
      onEvent: (event) => {
        if (event.event === "job.started") started.push(event.lease.tenantId);
      },
    });
    await worker.drained();
    // Long beside a claim, which may bring one tenant's jobs before the other's.
    const both = started.slice(0, 13_000);
    const ratio = both.filter((tenant) => tenant === heavy).length / both.filter((t) => t === light).length;
    expect(started).toHaveLength(20_000);
    expect(ratio).toBeGreaterThan(2.7);
    expect(ratio).toBeLessThan(3.3);
  });

  it("a tenant that was away has saved nothing up", async () => {
    const [queue, steady, back] = [newQueue(), newTenant(), newTenant()];
    await fill(queue, steady, 300);
    await fill(queue, back, 1);
    const taker = claimer([queue]);
    await takeFrom(taker, 200, 1);
    await fill(queue, back, 100);
    taker.nudge();
    const had = await takeFrom(taker, 40, 1);
    expect(had.get(back)).toBeGreaterThan(18);
    expect(had.get(steady)).toBeGreaterThan(18);
  });
});

describe("a flood", () => {
  it("keeps another tenant's single jobs waiting for two claims more than alone at most", async () => {
    const [queue, flood] = [newQueue(), newTenant()];
    await fill(queue, flood, 10_000);
    const taker = claimer([queue]);
    for (const size of [1, 10, 200]) {
      for (let n = 0; n < 5; n++) {
        await taker.take(size);
        const single = await db.oracle.enqueue("any", 1, { queue, tenant: newTenant() });
        taker.nudge();
        // Alone it would be in the first.
        const claims = [await taker.take(size), await taker.take(size), await taker.take(size)];
        const ids = claims.flatMap(({ leases }) => leases.map(({ jobId }) => jobId));
        expect(ids).toContain(single.id);
        // The rest went on to the flood: no slot stays empty for the sake of fairness.
        expect(ids.length).toBeGreaterThan(2 * size);
      }
    }
  });
});

describe("more tenants than one look shows", () => {
  it("are visited in bounded sets, and each gets the same", async () => {
    const queue = newQueue();
    const tenants = Array.from({ length: 150 }, (_, n) => `many-${queue}-${String(n).padStart(3, "0")}`);
    for (const tenant of tenants) await fill(queue, tenant, 4);
    const { slices, more } = await discover(store, { queues: [queue], versions: {}, limit: 64 });
    expect(slices.map(({ tenantId }) => tenantId)).toEqual(tenants.slice(0, 64));
    expect([...more]).toEqual([[queue, tenants[63]]]);
    const had = await takeFrom(claimer([queue]), 300, 1);
    expect([...new Set(had.values())]).toEqual([2]);
    expect(had.size).toBe(150);
  });

  it("in several queues are all reached", async () => {
    const queues = [newQueue(), newQueue()];
    for (const [at, queue] of queues.entries()) {
      for (let n = 0; n < 100; n++) await fill(queue, `${at}-${queue}-${n}`, 1);
    }
    const taker = claimer(queues);
    const ids = new Set<string>();
    for (let n = 0; n < 30; n++) for (const { jobId } of (await taker.take(10)).leases) ids.add(jobId);
    expect(ids.size).toBe(200);
  });

  it("that may not start anything do not hide one that may", async () => {
    const queue = newQueue();
    for (let n = 0; n < 130; n++) {
      const tenant = `closed-${queue}-${String(n).padStart(3, "0")}`;
      await db.oracle.setTenant(tenant, { maxRunning: 0 });
      await fill(queue, tenant, 1);
    }
    const open = await db.oracle.enqueue("any", 1, { queue, tenant: `open-${queue}` });
    expect((await claimer([queue]).take(5)).leases).toMatchObject([{ jobId: open.id }]);
  });
});

describe("a worker for one tenant", () => {
  it("claims and takes over only that tenant's jobs", async () => {
    const [queue, mine, other] = [newQueue(), newTenant(), newTenant()];
    await fill(queue, other, 3);
    await fill(queue, mine, 3);
    const { leases } = await claimer([queue], mine).take(10);
    expect(leases.map(({ tenantId }) => tenantId)).toEqual([mine, mine, mine]);
    const theirs = (await claimer([queue], other).take(10)).leases;
    for (const { jobId } of [...leases, ...theirs]) await expireLease(db, jobId);
    await db.sql(
      "UPDATE oracle.jobs SET job_type = 'echo', input_payload = '{\"n\": 1}' WHERE queue_name = $1",
      [queue],
    );
    await db.worker({ jobs: [echo], queues: [queue], tenant: mine });
    const states = async (tenant: string) =>
      (await db.oracle.list({ queue, tenantId: tenant })).items.map(({ state }) => state);
    await until("the lost jobs", async () => (await states(mine)).every((state) => state === "SUCCEEDED"));
    expect(await states(other)).toEqual(["RUNNING", "RUNNING", "RUNNING"]);
    expect(await db.sql("SELECT tenant_id FROM oracle.workers WHERE queues = ARRAY[$1]", [queue])).toEqual([
      { tenant_id: mine },
    ]);
  });

  it("is not asked for another tenant's job types", async () => {
    const [queue, mine, other] = [newQueue(), newTenant(), newTenant()];
    await db.worker({ jobs: [nap], queues: [newQueue()], tenant: mine });
    await db.worker({ jobs: [echo], queues: [queue] });
    const nobody = await db.oracle.enqueue(nap, { ms: 1 }, { queue, tenant: other });
    expect(await db.oracle.wait(nobody.id, { timeoutSeconds: 10 })).toMatchObject({
      error: { code: "UNSUPPORTED_JOB_TYPE" },
    });
  });
});
