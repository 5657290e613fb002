import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { useServer } from "./support/http.js";
import { useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";

// What a server's login may see and change of sharing between tenants: for one tenant, for all, and for nobody. And the
// same through the API.

const db = useTestDatabase();
const login = useLogins(db);
const server = useServer(db);
const VICTIM = "victim";
const OWN = "own";
const QUEUE = "shared";

let client: pg.Client;
beforeAll(async () => {
  client = await (await login({ roles: ["server"] })).connect();
  await client.query("SET ROLE oracle_server");
  await db.oracle.setTenant(VICTIM, { maxRunning: 7 });
  await db.oracle.setTenant(OWN, { maxRunning: 1 });
  const jobs = Array.from({ length: 30 }, (_, n) => n);
  await db.oracle.enqueueMany("any", jobs, { tenant: VICTIM, queue: QUEUE });
  await db.oracle.enqueueMany("any", jobs, { tenant: VICTIM, queue: QUEUE, runAfter: 3600 });
  await db.oracle.enqueueMany("any", [1, 2], { tenant: OWN, queue: QUEUE });
  await db.oracle.enqueue("any", 3, { tenant: OWN, queue: QUEUE, runAfter: 3600 });
});

const forOne = { tenant_id: OWN };
const forAll = { every_tenant: "on" };
const both = { ...forOne, ...forAll };

/** One transaction of the server's login with these settings; always undone. */
async function ask(settings: Record<string, string>, sql: string, values: unknown[] = []) {
  await client.query("BEGIN");
  try {
    for (const [name, value] of Object.entries(settings)) {
      await client.query("SELECT set_config($1, $2, true)", [`oracle.${name}`, value]);
    }
    return (await client.query(sql, values)).rows;
  } finally {
    await client.query("ROLLBACK");
  }
}

const refused = { code: "42501" };

describe("a server that acts for one tenant", () => {
  it.each([forOne, both])("does not see every tenant with %j", async (settings) => {
    expect(await ask(settings, "SELECT oracle.sees_every_tenant() AS every")).toEqual([{ every: false }]);
    expect(await ask(settings, "SELECT DISTINCT tenant_id FROM oracle.jobs")).toEqual([{ tenant_id: OWN }]);
    expect(await ask(settings, "SELECT tenant_id FROM oracle.tenants")).toEqual([{ tenant_id: OWN }]);
    expect(await ask(settings, "SELECT * FROM oracle.queue_depths(100)")).toMatchObject([{ ready: 2 }]);
  });

  it.each([forOne, both])(
    "cannot tell from a count how much others have waiting, with %j",
    async (settings) => {
      expect(await ask(settings, "SELECT * FROM oracle.count_delayed(10)")).toEqual([
        { delayed: 1, looked: 1 },
      ]);
      const [waiting] = await ask(settings, "SELECT oracle.waiting_jobs(10) AS ids");
      const own = await db.sql("SELECT job_id FROM oracle.jobs WHERE tenant_id = $1", [OWN]);
      expect(waiting?.ids.toSorted()).toEqual(own.map(({ job_id }) => job_id).toSorted());
      // Its own number is no secret.
      expect(await ask(settings, "SELECT oracle.waiting_jobs(2) AS ids")).toEqual([{ ids: null }]);
    },
  );

  it.each([forOne, both, {}])("cannot pause a queue with %j", async (settings) => {
    await expect(ask(settings, "SELECT oracle.pause_queue($1, true)", [QUEUE])).rejects.toMatchObject(
      refused,
    );
    const directly = "INSERT INTO oracle.queues (queue_name, paused_at) VALUES ($1, clock_timestamp())";
    await expect(ask(settings, directly, [QUEUE])).rejects.toMatchObject(refused);
    await expect(ask(settings, "UPDATE oracle.queues SET paused_at = NULL")).rejects.toMatchObject(refused);
  });

  it.each([forOne, both, {}])("cannot change a limit, its own neither, with %j", async (settings) => {
    const widen = "UPDATE oracle.tenants SET max_running = 99 RETURNING tenant_id";
    expect(await ask(settings, widen)).toEqual([]);
    const add = "INSERT INTO oracle.tenants (tenant_id, weight) VALUES ($1, 1000)";
    await expect(ask(settings, add, ["new"])).rejects.toMatchObject(refused);
    await expect(ask(settings, "DELETE FROM oracle.tenants")).rejects.toMatchObject(refused);
    await expect(ask(settings, "SELECT oracle.count_running($1)", [OWN])).rejects.toMatchObject(refused);
    for (const table of ["turns", "openings", "waiting_counts", "submissions"]) {
      await expect(ask(settings, `SELECT FROM oracle.${table}`), table).rejects.toMatchObject(refused);
    }
    for (const table of ["slots", "parked_jobs"]) {
      await expect(ask(settings, `DELETE FROM oracle.${table}`), table).rejects.toMatchObject(refused);
    }
  });
});

describe("a server that answers somebody who sees every tenant", () => {
  it("sees all, pauses queues and changes limits", async () => {
    expect(await ask(forAll, "SELECT oracle.sees_every_tenant() AS every")).toEqual([{ every: true }]);
    expect(await ask(forAll, "SELECT * FROM oracle.count_delayed(10)")).toEqual([
      { delayed: 10, looked: 10 },
    ]);
    expect(await ask(forAll, "SELECT oracle.waiting_jobs(10) AS ids")).toEqual([{ ids: null }]);
    await ask(forAll, "SELECT oracle.pause_queue($1, true)", [QUEUE]);
    expect(
      await ask(forAll, "UPDATE oracle.tenants SET weight = 2 WHERE tenant_id = $1 RETURNING weight", [OWN]),
    ).toEqual([{ weight: 2 }]);
  });
});

describe("a tenant's own login", () => {
  it("reads its limits and nobody else's", async () => {
    const own = await (await login({ tenantId: OWN })).connect();
    expect((await own.query("SELECT tenant_id, max_running FROM oracle.tenants")).rows).toEqual([
      { tenant_id: OWN, max_running: 1 },
    ]);
    await expect(own.query("UPDATE oracle.tenants SET max_running = 9")).rejects.toMatchObject(refused);
    for (const table of ["slots", "parked_jobs", "turns", "openings", "waiting_counts", "submissions"]) {
      await expect(own.query(`SELECT FROM oracle.${table}`), table).rejects.toMatchObject(refused);
    }
  });
});

describe("over HTTP", () => {
  it("whoever is bound to a tenant sees that tenant's limits and use", async () => {
    const { items } = await (await server.client("viewer", OWN)).listTenants({});
    expect(items).toMatchObject([{ tenant_id: OWN, max_running: 1, waiting: 3, running: 0, jobs: 3 }]);
    const all = await (await server.client("viewer")).listTenants({});
    expect(all.items.map(({ tenant_id }) => tenant_id)).toEqual(expect.arrayContaining([OWN, VICTIM]));
  });

  it("an administrator of all tenants adds and changes them", async () => {
    const admin = await server.client("admin");
    const rate = { count: 5, seconds: 60 };
    const added = await admin.addTenant({ body: { tenant_id: "acme", weight: 3, start_rate: rate } });
    expect(added).toMatchObject({
      tenant_id: "acme",
      weight: 3,
      start_rate: rate,
      max_running: null,
      jobs: 0,
    });
    await expect(admin.addTenant({ body: { tenant_id: "acme" } })).rejects.toMatchObject({
      status: 409,
      code: "TENANT_EXISTS",
    });
    const changed = await admin.changeTenant({
      params: { tenant: "acme" },
      body: { max_running: 4, start_rate: null, retention_seconds: 86_400 },
    });
    expect(changed).toMatchObject({ weight: 3, max_running: 4, start_rate: null, retention_seconds: 86_400 });
  });

  it.each([
    { weight: 0 },
    { weight: null },
    { max_running: -1 },
    { start_rate: { count: 0, seconds: 1 } },
    { retention_seconds: 0 },
    { wieght: 2 },
  ])("refuses %j", async (body) => {
    const response = await server.fetch("/tenants/acme", {
      method: "PATCH",
      token: await server.token("admin"),
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ error: { code: "INVALID_ARGUMENT" } });
  });

  it("a submission beyond the quota or the rate is told to come back", async () => {
    const submit = async (tenant: string) =>
      server.fetch("/jobs", {
        method: "POST",
        token: await server.token("operator", tenant),
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ type: "any", input: 1 }),
      });
    await db.oracle.setTenant("full", { maxWaiting: 1 });
    expect((await submit("full")).status).toBe(201);
    const full = await submit("full");
    expect(full.status).toBe(429);
    expect(await full.json()).toMatchObject({ error: { code: "QUOTA_EXCEEDED", field: "tenant" } });
    await db.oracle.setTenant("fast", { enqueueRate: { count: 1, seconds: 3600 } });
    expect((await submit("fast")).status).toBe(201);
    const fast = await submit("fast");
    expect(fast.status).toBe(429);
    const problem = (await fast.json()) as { error: { code: string; retry_after_seconds: number } };
    expect(problem).toMatchObject({ error: { code: "RATE_LIMITED" } });
    expect(problem.error.retry_after_seconds).toBeGreaterThan(60);
    expect(Number(fast.headers.get("retry-after"))).toBe(Math.ceil(problem.error.retry_after_seconds));
  });
});
