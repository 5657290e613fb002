import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease, Outcome } from "../dist/core/job.js";
import { acquire } from "../dist/store/acquire.js";
import type { Claim } from "../dist/store/claim.js";
import type { Database } from "../dist/store/database.js";
import { freeDeadWorker } from "../dist/store/free-worker.js";
import { promote } from "../dist/store/promote.js";
import { reclaim } from "../dist/store/reclaim.js";
import { settle } from "../dist/store/settle.js";
import { Claimer } from "../dist/worker/claimer.js";
import { nap } from "./support/jobs.js";
import { expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

// Caps per tenant and per concurrency key, and rates of starts.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let number = 0;
const newQueue = () => `limits-${number++}`;
const newTenant = () => `tenant-${number++}`;
const submit = (options: Parameters<typeof db.oracle.enqueue>[2]) =>
  db.oracle.enqueue("any", number++, options);
const take = (queue: string, want: number, workerId = "w"): Promise<Claim> =>
  new Claimer(store, { workerId, queues: [queue], leaseSeconds: 60, versions: {} }).take(want);
const success: Outcome = { kind: "succeeded", resultText: "1", contentHash: "h" };
const finish = (...leases: Lease[]) =>
  settle(
    store,
    leases.map((lease) => ({ lease, outcome: success })),
  );
const sweep = (queues: string[]) =>
  reclaim(store, { workerId: "sweeper", queues, leaseSeconds: 60, versions: {}, limit: 10 });
const idsOf = ({ leases }: Claim) => leases.map(({ jobId }) => jobId);
const leftOver = async (tenant: string) => {
  const [row] = await db.sql(
    `SELECT (SELECT count(*)::int FROM oracle.slots WHERE tenant_id = $1) AS slots,
       (SELECT count(*)::int FROM oracle.parked_jobs WHERE tenant_id = $1) AS parked,
       (SELECT count(*)::int FROM oracle.openings WHERE tenant_id = $1) AS openings`,
    [tenant],
  );
  return row;
};

/** Claims in a transaction of its own that stays open until told: what others do meanwhile is the race. */
async function claimWithoutCommit(
  queue: string,
  tenant: string,
  quota: number,
): Promise<pg.Client & { jobs: string[] }> {
  const client = new pg.Client(db.url);
  client.on("error", () => {});
  await client.connect();
  await client.query("BEGIN");
  const { rows } = await client.query(
    `SELECT * FROM oracle.claim_jobs(ARRAY[$1], ARRAY[$2], ARRAY[$3::int], ARRAY[-1000000], ARRAY['-infinity'::timestamptz],
       ARRAY['00000000-0000-0000-0000-000000000000'::uuid], 'racer', 60, gen_random_uuid(), '{}')`,
    [queue, tenant, quota],
  );
  return Object.assign(client, { jobs: rows.map((row) => row.job_id) });
}

describe("a cap on a tenant", () => {
  it("lets as many run as it says, in all queues together, and the others go on", async () => {
    const [one, two, tenant] = [newQueue(), newQueue(), newTenant()];
    await db.oracle.setTenant(tenant, { maxRunning: 3 });
    for (let n = 0; n < 4; n++) await submit({ queue: one, tenant });
    for (let n = 0; n < 4; n++) await submit({ queue: two, tenant });
    const other = await submit({ queue: two });
    const first = await take(one, 2);
    expect(first.leases).toHaveLength(2);
    const second = await take(two, 9);
    expect(second.leases.map(({ tenantId }) => tenantId).sort()).toEqual(["default", tenant]);
    expect(idsOf(second)).toContain(other.id);
    expect((await take(one, 9)).leases).toEqual([]);
    await finish(first.leases[0] as Lease);
    expect((await take(two, 9)).leases).toHaveLength(1);
  });

  it("is not overrun by a claim that does not see what another is starting", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    await db.oracle.setTenant(tenant, { maxRunning: 1 });
    await submit({ queue, tenant });
    await submit({ queue, tenant });
    const free = await submit({ queue });
    const racer = await claimWithoutCommit(queue, tenant, 1);
    expect(racer.jobs).toHaveLength(1);
    // It neither starts the second job nor waits for the one who decides.
    expect(idsOf(await take(queue, 5))).toEqual([free.id]);
    await racer.query("COMMIT");
    expect(idsOf(await take(queue, 5))).toEqual([]);
    await racer.end();
  });

  it("counts the jobs that run when it is set, also one that is being started", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    for (let n = 0; n < 4; n++) await submit({ queue, tenant });
    const before = await take(queue, 1);
    const racer = await claimWithoutCommit(queue, tenant, 1);
    const set = db.oracle.setTenant(tenant, { maxRunning: 2 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await racer.query("COMMIT");
    await set;
    await racer.end();
    expect((await take(queue, 5)).leases).toEqual([]);
    await finish(...before.leases);
    expect((await take(queue, 5)).leases).toHaveLength(1);
  });

  it("counts a job whose claim had not heard of it", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    for (let n = 0; n < 3; n++) await submit({ queue, tenant });
    // The claim has read the limits and stands before the table of jobs.
    const gate = new pg.Client(db.url);
    await gate.connect();
    await gate.query("BEGIN; LOCK TABLE oracle.jobs IN EXCLUSIVE MODE");
    const claiming = take(queue, 2);
    await until("the claim to wait", async () => {
      const waiting = await db.sql(
        "SELECT FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE '%claim_jobs%' AND datname = current_database()",
      );
      return waiting.length > 0;
    });
    let isSet = false;
    const setting = db.oracle.setTenant(tenant, { maxRunning: 2 }).then(() => {
      isSet = true;
    });
    await until("the setting to wait too, or to be through", async () => {
      const waiting = await db.sql(
        "SELECT FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE '%count_running%' AND datname = current_database()",
      );
      return waiting.length > 0 || isSet;
    });
    await gate.query("COMMIT");
    await gate.end();
    await setting;
    expect((await claiming).leases).toHaveLength(2);
    expect((await take(queue, 5)).leases).toEqual([]);
  });

  it("lowered below what runs it lets nothing start, raised it lets more", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    await db.oracle.setTenant(tenant, { maxRunning: 3 });
    for (let n = 0; n < 8; n++) await submit({ queue, tenant });
    const running = await take(queue, 9);
    await db.oracle.setTenant(tenant, { maxRunning: 1 });
    await finish(running.leases[0] as Lease);
    expect((await take(queue, 9)).leases).toEqual([]);
    await db.oracle.setTenant(tenant, { maxRunning: 4 });
    expect((await take(queue, 9)).leases).toHaveLength(2);
    await db.oracle.setTenant(tenant, { maxRunning: null });
    expect((await take(queue, 9)).leases).toHaveLength(3);
  });
});

describe("a concurrency key", () => {
  const keyed = (queue: string, tenant: string, more: object = {}) =>
    submit({ queue, tenant, concurrencyKey: "k", ...more });

  it("runs its jobs one after the other, in their order, and not those of another tenant's key", async () => {
    const [queue, tenant, other] = [newQueue(), newTenant(), newTenant()];
    const late = await keyed(queue, tenant, { priority: -1 });
    const soon = await keyed(queue, tenant);
    const first = await keyed(queue, tenant, { priority: 1 });
    const theirs = await keyed(queue, other);
    const ran: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { leases } = await take(queue, 9);
      ran.push(...leases.map(({ jobId }) => jobId));
      await finish(...leases);
      await promote(store);
    }
    expect(ran).toContain(theirs.id);
    expect(ran.filter((id) => id !== theirs.id)).toEqual([first.id, soon.id, late.id]);
    expect(await leftOver(tenant)).toEqual({ slots: 0, parked: 0, openings: 0 });
  });

  it("is not overrun by a claim that does not see what another is starting", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const ids = [await keyed(queue, tenant), await keyed(queue, tenant)].map(({ id }) => id);
    const racer = await claimWithoutCommit(queue, tenant, 1);
    expect(racer.jobs).toEqual([ids[0]]);
    expect(idsOf(await take(queue, 5))).toEqual([]);
    await racer.query("COMMIT");
    expect(idsOf(await take(queue, 5))).toEqual([]);
    await racer.end();
  });

  it("holds at its limit across queues", async () => {
    const [one, two, tenant] = [newQueue(), newQueue(), newTenant()];
    for (const queue of [one, one, one, two, two, two]) await keyed(queue, tenant, { concurrencyLimit: 2 });
    const first = await take(one, 9);
    expect(first.leases).toHaveLength(2);
    expect((await take(two, 9)).leases).toEqual([]);
    await finish(first.leases[0] as Lease);
    await promote(store);
    expect((await take(two, 9)).leases).toHaveLength(1);
    expect((await take(one, 9)).leases).toEqual([]);
  });

  it("that is full does not block what lies behind its jobs, however many they are", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    await db.oracle.enqueueMany(
      "any",
      Array.from({ length: 3500 }, (_, n) => n),
      { queue, tenant, concurrencyKey: "k", priority: 5 },
    );
    const behind = await submit({ queue, tenant });
    expect((await take(queue, 1)).leases).toMatchObject([{ priority: 5, holdsSlot: true }]);
    expect(idsOf(await take(queue, 1))).toEqual([behind.id]);
    expect(await leftOver(tenant)).toMatchObject({ slots: 1, parked: 3499 });
  });

  it("in a paused queue does not keep the key's jobs of another queue", async () => {
    const [paused, open, tenant] = [newQueue(), newQueue(), newTenant()];
    const runs = await keyed(paused, tenant, { priority: 9 });
    await keyed(paused, tenant, { priority: 9 });
    const waits = await keyed(open, tenant);
    const { leases } = await take(paused, 9);
    expect(leases).toMatchObject([{ jobId: runs.id }]);
    expect(await take(open, 9)).toMatchObject({ leases: [] });
    await take(paused, 9);
    await db.oracle.pauseQueue(paused);
    await finish(...leases);
    await promote(store);
    expect(idsOf(await take(open, 9))).toEqual([waits.id]);
  });

  it.each([
    ["cancelled", (id: string) => db.oracle.cancel(id)],
    [
      "held",
      (id: string) => db.as("worker", "UPDATE oracle.jobs SET hold_reason = 'x' WHERE job_id = $1", [id]),
    ],
    [
      "put off",
      (id: string) =>
        db.as(
          "worker",
          "UPDATE oracle.jobs SET run_after = clock_timestamp() + interval '1 h' WHERE job_id = $1",
          [id],
        ),
    ],
    [
      "acquired and failed",
      async (id: string) => {
        const won = await acquire(store, { jobId: id, workerId: "w", leaseSeconds: 60 });
        if (!won.won) throw new Error(won.why);
        const error = { code: "HANDLER_ERROR" as const, message: "m", retryable: false };
        await settle(store, [{ lease: won.lease, outcome: { kind: "terminal", error } }]);
      },
    ],
  ])("hands the slot on when the job that was to have it is %s", async (_how, remove) => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const [, second, third] = [
      await keyed(queue, tenant),
      await keyed(queue, tenant),
      await keyed(queue, tenant),
    ];
    const { leases } = await take(queue, 1);
    expect(await take(queue, 9)).toMatchObject({ leases: [] });
    await finish(...leases);
    await promote(store);
    await remove((second as { id: string }).id);
    await promote(store);
    expect(idsOf(await take(queue, 9))).toEqual([third?.id]);
  });
});

describe("what is left over", () => {
  it("a ready row of a job that is over, which was to have the slot, gives way to the next", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const options = { queue, tenant, concurrencyKey: "k" };
    const over = await submit(options);
    const next = await submit(options);
    const { leases } = await take(queue, 1);
    await take(queue, 1);
    // As a claim would leave it that was rolled back while somebody started its job by id.
    await db.sql(
      `INSERT INTO oracle.ready_jobs (queue_name, tenant_id, rank, ready_at, job_id, concurrency_key, concurrency_limit)
       SELECT queue_name, tenant_id, 0, run_after, job_id, 'k', 1 FROM oracle.jobs WHERE job_id = $1`,
      [over.id],
    );
    await finish(...leases);
    await promote(store);
    await take(queue, 1);
    await promote(store);
    expect(idsOf(await take(queue, 1))).toEqual([next.id]);
  });
});

describe("a slot comes back", () => {
  const pair = async (queue: string, tenant: string) => {
    const first = await submit({ queue, tenant, concurrencyKey: "k", priority: 1 });
    const second = await submit({ queue, tenant, concurrencyKey: "k" });
    const [lease] = (await take(queue, 9, queue)).leases as [Lease];
    expect(lease.jobId).toBe(first.id);
    expect(await take(queue, 9)).toMatchObject({ leases: [] });
    return { lease, second };
  };

  it("when the lease ends: the job itself goes on with it, and nobody else starts", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const { lease, second } = await pair(queue, tenant);
    await expireLease(db, lease.jobId);
    expect((await take(queue, 9)).leases).toEqual([]);
    const { leases } = await sweep([queue]);
    expect(leases).toMatchObject([{ jobId: lease.jobId, attemptNo: 2, holdsSlot: true }]);
    await promote(store);
    expect((await take(queue, 9)).leases).toEqual([]);
    await finish(...leases);
    await promote(store);
    expect(idsOf(await take(queue, 9))).toEqual([second.id]);
  });

  it("when the lease ends and no worker serves the queue any more", async () => {
    const [queue, tenant, elsewhere] = [newQueue(), newTenant(), newQueue()];
    const { lease } = await pair(queue, tenant);
    const other = await submit({ queue: elsewhere, tenant, concurrencyKey: "k" });
    await expireLease(db, lease.jobId);
    await db.sql(
      "UPDATE oracle.claims SET expires_at = expires_at - interval '11 s' WHERE $1 = ANY (job_ids)",
      [lease.jobId],
    );
    expect((await sweep([elsewhere])).ended).toMatchObject([
      { jobId: lease.jobId, state: "FAILED_RETRYABLE" },
    ]);
    await promote(store);
    expect(idsOf(await take(elsewhere, 9))).toEqual([other.id]);
  });

  it("when a supervisor frees what a dead process had claimed", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const { lease } = await pair(queue, tenant);
    await freeDeadWorker(store, queue, [], "WORKER_CRASHED");
    await promote(store);
    expect(idsOf(await take(queue, 9))).toEqual([lease.jobId]);
    expect((await leftOver(tenant))?.slots).toBe(1);
  });

  it.each([
    ["fails for good", "FAILED_TERMINAL", "completed_at = clock_timestamp(), error_json = '{}'"],
    ["goes back", "PENDING", "run_after = clock_timestamp() + interval '1 h'"],
  ])("when the job %s by hand", async (_how, state, change) => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const { lease, second } = await pair(queue, tenant);
    await db.as(
      "worker",
      `UPDATE oracle.jobs SET state = '${state}', lease_expires_at = NULL, ${change} WHERE job_id = $1`,
      [lease.jobId],
    );
    await promote(store);
    expect(idsOf(await take(queue, 9))).toEqual([second.id]);
  });

  it("once: an attempt that lost its lease gives nothing back", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const { lease } = await pair(queue, tenant);
    await expireLease(db, lease.jobId);
    await sweep([queue]);
    await finish(lease);
    await promote(store);
    expect((await take(queue, 9)).leases).toEqual([]);
  });
});

describe("by id", () => {
  it("limits bind too, and a loss says which", async () => {
    const [queue, tenant, capped, paced] = [newQueue(), newTenant(), newTenant(), newTenant()];
    const start = (jobId: string) => acquire(store, { jobId, workerId: "w", leaseSeconds: 60 });
    await submit({ queue, tenant, concurrencyKey: "k" });
    const second = await submit({ queue, tenant, concurrencyKey: "k" });
    await take(queue, 1);
    expect(await start(second.id)).toEqual({ won: false, why: "waits: its concurrency key is full" });

    await db.oracle.setTenant(capped, { maxRunning: 0 });
    const none = await submit({ queue, tenant: capped });
    expect(await start(none.id)).toEqual({ won: false, why: "waits: its tenant runs as many as it may" });

    await db.oracle.setTenant(paced, { startRate: { count: 1, seconds: 3600 } });
    const [one, two] = [await submit({ queue, tenant: paced }), await submit({ queue, tenant: paced })];
    expect(await start(one.id)).toMatchObject({ won: true });
    expect(await start(two.id)).toEqual({ won: false, why: "waits for its tenant's rate" });
  });

  it("a start takes its slot from the claims", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const first = await submit({ queue, tenant, concurrencyKey: "k" });
    await submit({ queue, tenant, concurrencyKey: "k" });
    await db.oracle.startJob(first.id, "me");
    expect((await take(queue, 9)).leases).toEqual([]);
  });
});

describe("a rate of starts", () => {
  it("saves up one second's worth, then lets starts through as time passes", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    await db.oracle.setTenant(tenant, { startRate: { count: 120, seconds: 60 } });
    for (let n = 0; n < 6; n++) await submit({ queue, tenant, priority: 5 });
    const free = await submit({ queue });
    const { leases } = await take(queue, 9);
    expect(leases.filter((lease) => lease.tenantId === tenant)).toHaveLength(2);
    expect(leases.map(({ jobId }) => jobId)).toContain(free.id);
    expect((await take(queue, 9)).leases).toEqual([]);
    // Workers are told when the next one may start.
    const { nextInSeconds } = await promote(store);
    expect(nextInSeconds).toBeGreaterThan(0);
    expect(nextInSeconds).toBeLessThanOrEqual(0.5);
    await db.sql(
      `UPDATE oracle.turns SET counted_at = counted_at - interval '0.6 s', opens_at = opens_at - interval '0.6 s'
       WHERE tenant_id = $1`,
      [tenant],
    );
    expect((await take(queue, 9)).leases).toHaveLength(1);
  });

  it("is kept by a worker, which starts the rest when it may", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    await db.oracle.setTenant(tenant, { startRate: { count: 4, seconds: 1 } });
    const jobs = await db.oracle.enqueueMany(nap, Array(7).fill({ ms: 1 }), { queue, tenant });
    await db.worker({ jobs: [nap], queues: [queue], pollSeconds: 30 });
    for (const job of jobs) await job.result({ timeoutSeconds: 20 });
    const [row] = await db.sql(
      `SELECT extract(epoch FROM max(a.started_at) - min(a.started_at))::float8 AS seconds
       FROM oracle.attempts a JOIN oracle.jobs j USING (job_id) WHERE j.queue_name = $1`,
      [queue],
    );
    expect(row?.seconds).toBeGreaterThan(0.7);
  });
});

describe("a worker", () => {
  it("drains jobs that must wait for each other", async () => {
    const [queue, tenant] = [newQueue(), newTenant()];
    const options = { queue, tenant, concurrencyKey: "k", concurrencyLimit: 2 };
    await db.oracle.enqueueMany(nap, Array(20).fill({ ms: 2 }), options);
    await db.oracle.setTenant(`${tenant}-capped`, { maxRunning: 1 });
    await db.oracle.enqueueMany(nap, Array(10).fill({ ms: 2 }), { queue, tenant: `${tenant}-capped` });
    const worker = await db.worker({ jobs: [nap], queues: [queue], concurrency: 20, pollSeconds: 30 });
    await worker.drained();
    expect((await db.oracle.list({ queue, state: "SUCCEEDED" })).items).toHaveLength(30);
    await worker.stop();
    expect(await leftOver(tenant)).toMatchObject({ slots: 0, parked: 0 });
  });
});
