import { defineJob } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { settle } from "../dist/store/settle.js";
import { Claimer } from "../dist/worker/claimer.js";
import { runToEnd } from "./support/cli.js";
import { echo, nap } from "./support/jobs.js";
import { workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// What a tenant may submit, what it has used, and the commands for both.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let number = 0;
const newTenant = () => `quota-${number++}`;
const submit = (tenant: string, options: object = {}) =>
  db.oracle.enqueue("any", number++, { tenant, ...options });
const jobsOf = async (tenant: string) => {
  const [row] = await db.sql("SELECT count(*)::int AS n FROM oracle.jobs WHERE tenant_id = $1", [tenant]);
  return row?.n;
};
const cli = (...args: string[]) => runToEnd(args, { env: { DATABASE_URL: db.url } });

describe("a quota of waiting jobs", () => {
  it("refuses what goes beyond, names tenant and limit, and stores nothing of it", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { maxWaiting: 3 });
    await db.oracle.enqueueMany("any", [1, 2], { tenant });
    await expect(db.oracle.enqueueMany("any", [3, 4], { tenant })).rejects.toMatchObject({
      code: "QUOTA_EXCEEDED",
      field: "tenant",
      message: `Tenant '${tenant}' has 2 jobs waiting and may have 3; there is no room for 2 more, try again when some have started.`,
    });
    expect(await jobsOf(tenant)).toBe(2);
    await submit(tenant);
    await expect(submit(tenant)).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
    // Another tenant in the same statement falls with it, all or nothing; alone it is not concerned.
    await submit(newTenant());
  });

  it("counts jobs in every queue, those that wait for their time, and those that are parked", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { maxWaiting: 4 });
    const queues = [`${tenant}-a`, `${tenant}-b`];
    await submit(tenant, { queue: queues[0], runAfter: 3600 });
    for (let n = 0; n < 2; n++) await submit(tenant, { queue: queues[1], concurrencyKey: "k" });
    const taker = new Claimer(store, { workerId: "w", queues, leaseSeconds: 60, versions: {} });
    expect((await taker.take(1)).leases).toHaveLength(1);
    await taker.take(1);
    // One waits for its time, one is parked, one runs and does not count.
    await submit(tenant, { queue: queues[0] });
    await submit(tenant, { queue: queues[1] });
    await expect(submit(tenant)).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
  });

  it("counts a job that comes back, and no longer one that ends or runs", async () => {
    const [tenant, queue] = [newTenant(), newTenant()];
    await db.oracle.setTenant(tenant, { maxWaiting: 2 });
    const [first, second] = await db.oracle.enqueueMany("any", [1, 2], { tenant, queue });
    const full = async () =>
      (await submit(tenant, { queue }).catch((error) => error)).code === "QUOTA_EXCEEDED";
    expect(await full()).toBe(true);
    const [lease] = (
      await new Claimer(store, { workerId: "w", queues: [queue], leaseSeconds: 60, versions: {} }).take(1)
    ).leases as [Lease];
    await submit(tenant, { queue });
    await settle(store, [{ lease, outcome: { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 } }]);
    expect(await full()).toBe(true);
    await db.oracle.cancel(second?.id as string);
    expect(await full()).toBe(true);
    await db.oracle.cancel(first?.id as string);
    await submit(tenant, { queue });
    expect(await full()).toBe(true);
  });

  it("keeps its count when connections come and go", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { maxWaiting: 1000 });
    await submit(tenant);
    await db.sql("INSERT INTO oracle.waiting_counts SELECT $1, -n, 1 FROM generate_series(1, 60) n", [
      tenant,
    ]);
    await submit(tenant);
    await submit(tenant);
    const counts =
      "SELECT sum(jobs)::int AS jobs, count(*) < 20 AS few FROM oracle.waiting_counts WHERE tenant_id = $1";
    expect(await db.sql(counts, [tenant])).toEqual([{ jobs: 63, few: true }]);
  });

  it("lets a job be submitted again that is there already", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { maxWaiting: 2 });
    const first = await db.oracle.enqueue("any", 1, { tenant, key: "k" });
    const twin = await db.oracle.enqueue("any", 2, { tenant, dedupe: "active" });
    expect((await db.oracle.enqueue("any", 1, { tenant, key: "k" })).id).toBe(first.id);
    expect((await db.oracle.enqueue("any", 2, { tenant, dedupe: "active" })).id).toBe(twin.id);
    expect((await db.oracle.enqueue("any", 3, { tenant, key: first.id }).catch((error) => error)).code).toBe(
      "QUOTA_EXCEEDED",
    );
  });

  it("holds for the SQL function, also for the tenant's own login", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { maxWaiting: 0 });
    await expect(
      db.as("worker", "SELECT * FROM oracle.enqueue('any', '1', tenant_id => $1)", [tenant]),
    ).rejects.toThrow(/^QUOTA_EXCEEDED: tenant 'quota-/);
    // It sees its limits and cannot change them.
    await expect(db.as("tenant", "UPDATE oracle.tenants SET max_waiting = 9")).rejects.toMatchObject({
      code: "42501",
    });
    await db.as("server", "UPDATE oracle.tenants SET max_waiting = 9");
    expect(await db.sql("SELECT max_waiting FROM oracle.tenants WHERE tenant_id = $1", [tenant])).toEqual([
      { max_waiting: 0 },
    ]);
    await expect(db.as("tenant", "SELECT oracle.note_submission('other', 1000, 60)")).rejects.toMatchObject({
      code: "42501",
    });
  });
});

describe("a rate of submissions", () => {
  it("refuses what goes beyond and says when to try again", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { enqueueRate: { count: 5, seconds: 60 } });
    await db.oracle.enqueueMany("any", [1, 2, 3], { tenant });
    await submit(tenant);
    await submit(tenant);
    const refused = await submit(tenant).catch((error) => error);
    expect(refused).toMatchObject({ code: "RATE_LIMITED", field: "tenant" });
    expect(refused.retryAfterSeconds).toBeGreaterThan(50);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(60);
    expect(refused.toJSON()).toMatchObject({ retry_after_seconds: refused.retryAfterSeconds });
    expect(await jobsOf(tenant)).toBe(5);
    // When that time has passed, it is so.
    await db.sql("UPDATE oracle.submissions SET at = at - $2 * interval '1 s' WHERE tenant_id = $1", [
      tenant,
      refused.retryAfterSeconds,
    ]);
    await submit(tenant);
  });

  it("says so when no patience would help", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { enqueueRate: { count: 2, seconds: 1 } });
    const refused = await db.oracle.enqueueMany("any", [1, 2, 3], { tenant }).catch((error) => error);
    expect(refused).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: undefined });
    expect(refused.message).toMatch(/3 at once are more than that; submit fewer at a time\.$/);
  });

  it("lets nobody wait for another's open transaction", async () => {
    const tenant = newTenant();
    await db.oracle.setTenant(tenant, { enqueueRate: { count: 100, seconds: 60 }, maxWaiting: 100 });
    const open = new pg.Client(db.url);
    await open.connect();
    await open.query("BEGIN");
    await db.oracle.enqueue("any", 1, { tenant, client: open });
    await db.oracle.enqueue("any", 2, { tenant, client: open });
    const other = new pg.Client(db.url);
    await other.connect();
    await other.query("SET lock_timeout = '1ms'");
    await db.oracle.enqueue("any", 3, { tenant, client: other });
    await open.query("ROLLBACK");
    await Promise.all([open.end(), other.end()]);
    expect(
      await db.sql("SELECT sum(jobs)::int AS n FROM oracle.submissions WHERE tenant_id = $1", [tenant]),
    ).toEqual([{ n: 1 }]);
  });
});

describe("accounts", () => {
  it("show what each tenant has waiting and running, and what it used", async () => {
    const [tenant, queue] = [newTenant(), newTenant()];
    await db.oracle.enqueueMany(echo, [{ n: 1 }, { n: 2 }], { tenant, queue });
    await db.oracle.enqueue(nap, { ms: 60_000 }, { tenant, queue });
    const worker = await db.worker({ jobs: [echo, nap], queues: [queue], shutdownGraceSeconds: 0 });
    for (const job of (await db.oracle.list({ queue, type: "echo" })).items) await db.oracle.wait(job.jobId);
    await submit(tenant, { queue, runAfter: 3600 });
    const of = async (sinceSeconds: number) =>
      (await db.oracle.tenants({ sinceSeconds })).find(({ tenantId }) => tenantId === tenant);
    const account = await of(3600);
    expect(account).toMatchObject({ jobs: 4, succeeded: 2, attempts: 3, waiting: 1, running: 1, weight: 1 });
    expect(account?.createdAt).toBeNull();
    expect(account?.bytes).toBeGreaterThan(20);
    expect(account?.runSeconds).toBeGreaterThan(0);
    await worker.stop();
    await db.sql(
      "UPDATE oracle.jobs SET created_at = created_at - interval '2 h' WHERE tenant_id = $1 AND completed_at IS NULL",
      [tenant],
    );
    expect(await of(3600)).toMatchObject({ jobs: 2, waiting: 2, running: 0 });
  });
});

describe("what a job uses of models", () => {
  it("adds up over its attempts, also those that fail", async () => {
    const [tenant, queue] = [newTenant(), newTenant()];
    const thinker = defineJob({
      type: "thinker",
      input: z.object({}),
      output: z.object({}),
      backoff: { kind: "fixed", baseSeconds: 0.01, capSeconds: 1 },
      run({ usage, job }) {
        usage({ tokens: 100, cost: 0.25 });
        usage({ tokens: 20 });
        usage({ tokens: -1 });
        if (job.attemptNo === 1) throw new Error("once more");
        return {};
      },
    });
    await db.worker({ jobs: [thinker], queues: [queue] });
    const job = await db.oracle.enqueue(thinker, {}, { tenant, queue });
    await job.result({ timeoutSeconds: 20 });
    expect(await db.oracle.attempts(job.id)).toMatchObject([
      { attemptNo: 1, status: "FAILED", tokens: 120, cost: 0.25 },
      { attemptNo: 2, status: "SUCCEEDED", tokens: 120, cost: 0.25 },
    ]);
    const account = (await db.oracle.tenants()).find(({ tenantId }) => tenantId === tenant);
    expect(account).toMatchObject({ tokens: 240, cost: 0.5, attempts: 2 });
    // What makes no sense is not counted, and the handler's log says so.
    const [line] = await db.oracle.logs(job.id);
    expect(line).toMatchObject({ level: "warn", message: expect.stringMatching(/tokens must be/) });
  });
});

describe("the commands", () => {
  it("add, set and list what a tenant may do", async () => {
    const tenant = newTenant();
    expect((await cli("tenants", "add", tenant, "--weight", "3")).json).toMatchObject({
      tenant_id: tenant,
      weight: 3,
      max_running: null,
    });
    const set = await cli(
      ...["tenants", "set", tenant, "--max-running", "20", "--max-waiting", "1", "--rate", "5/s"],
      ...["--enqueue-rate", "600/m", "--retention", "30d"],
    );
    const limits = {
      tenant_id: tenant,
      weight: 3,
      max_running: 20,
      max_waiting: 1,
      rate: "5/s",
      enqueue_rate: "600/m",
      retention_seconds: 2_592_000,
    };
    expect(set.json).toEqual(limits);
    await submit(tenant);
    const { items } = (await cli("tenants", "list", "--since", "1h")).json as { items: object[] };
    expect(items).toContainEqual(expect.objectContaining({ ...limits, waiting: 1, jobs: 1 }));
    const refused = await cli("enqueue", "any", "--input", "1", "--tenant", tenant);
    expect(refused).toMatchObject({ code: 3, error: { code: "QUOTA_EXCEEDED", field: "tenant" } });
    expect(
      (await cli("tenants", "set", tenant, "--max-waiting", "none", "--rate", "none")).json,
    ).toMatchObject({
      max_waiting: null,
      rate: null,
      max_running: 20,
    });
  });

  it.each([
    [["add", "twice"], 3, "TENANT_EXISTS"],
    [["set", "twice"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--weight", "0"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--weight", "none"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--max-running", "-1"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--rate", "5"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--rate", "0/s"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--enqueue-rate", "5/d"], 2, "INVALID_ARGUMENT"],
    [["set", "twice", "--retention", "soon"], 2, "INVALID_ARGUMENT"],
    [["set", "x".repeat(201), "--weight", "1"], 2, "INVALID_ARGUMENT"],
  ])("refuse %j with %d", async (args, code, error) => {
    await db.oracle.setTenant("twice", { weight: 1 });
    expect(await cli("tenants", ...args)).toMatchObject({ code, error: { code: error } });
  });

  it.each([
    [{ weight: 1.5 }, "weight"],
    [{ weight: null }, "weight"],
    [{ maxRunning: -1 }, "maxRunning"],
    [{ maxWaiting: 1e9 }, "maxWaiting"],
    [{ startRate: { count: 0, seconds: 1 } }, "startRate"],
    [{ enqueueRate: { count: 1, seconds: 0.5 } }, "enqueueRate"],
    [{ retentionSeconds: 0 }, "retentionSeconds"],
  ])("and so does the library: %j", async (limits, field) => {
    await expect(db.oracle.setTenant("any", limits as object)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      field,
    });
  });
});
