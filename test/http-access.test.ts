import { describe, expect, it } from "vitest";
import { errorCodes } from "../dist/core/errors.js";
import { type Operation, operations, streams } from "../dist/http/operations.js";
import { statuses } from "../dist/http/status.js";
import { useServer } from "./support/http.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const server = useServer(db, { crash: async () => ({ pid: 1, worker_id: "w", job_id: null }) });

const all: Record<string, Operation> = { ...operations, ...streams };
const ranks = ["viewer", "operator", "admin"] as const;
const nowhere: Record<string, string> = {
  id: "00000000-0000-7000-8000-000000000000",
  queue: "none",
  tenant: "none",
  token: "00000000-0000-7000-8000-000000000000",
  sha256: "0".repeat(64),
};

const call = (operation: Operation, token?: string, headers: Record<string, string> = {}) =>
  server.fetch(
    operation.path.replace(/:(\w+)/g, (_, name) => nowhere[name] as string),
    { method: operation.method, headers, ...(token === undefined ? {} : { token }) },
  );

describe("who may call what", () => {
  const guarded = Object.entries(all).filter(([, { access }]) => access !== "public");

  it.each(guarded)(
    "%s: nobody without a token, or with one that is unknown or revoked",
    async (_name, operation) => {
      for (const token of [undefined, `owt_${"A".repeat(43)}`, "nonsense"]) {
        const response = await call(operation, token);
        expect(response.status).toBe(401);
        expect(await response.json()).toMatchObject({ error: { code: "UNAUTHENTICATED" } });
      }
    },
  );

  it.each(guarded)("%s: its role and those above it", async (_name, operation) => {
    for (const role of ranks) {
      const { status } = await call(operation, await server.token(role));
      const enough = ranks.indexOf(role) >= ranks.indexOf(operation.access as (typeof ranks)[number]);
      if (enough) expect([401, 403], role).not.toContain(status);
      else expect(status, role).toBe(403);
    }
  });

  it.each(guarded)("%s: a token bound to one tenant", async (_name, operation) => {
    const { status } = await call(operation, await server.token("admin", "bound"));
    if (operation.allTenants) expect(status).toBe(403);
    else expect([401, 403]).not.toContain(status);
  });

  it("ends with the token's life", async () => {
    const admin = await server.client("admin");
    const made = await admin.addToken({ body: { tenant_id: "brief", role: "viewer", name: "short" } });
    expect(made.token).toMatch(/^owt_/);
    expect((await server.fetch("/session", { token: made.token })).status).toBe(200);
    await admin.revokeToken({ params: { token: made.token_id } });
    const { items } = await admin.listTokens({ query: { tenant: "brief" } });
    expect(items).toMatchObject([{ token_id: made.token_id, name: "short", revoked_at: expect.any(String) }]);
    expect(JSON.stringify(items)).not.toContain(made.token);
    // It is remembered for two seconds.
    await expect
      .poll(async () => (await server.fetch("/session", { token: made.token })).status, { timeout: 5000 })
      .toBe(401);
  });
});

describe("tenants", () => {
  it("see their own only, whatever they ask for", async () => {
    const mine = await db.oracle.enqueue(
      "nobody",
      { secret: "mine" },
      { tenant: "a", queue: "shared", key: "k" },
    );
    const theirs = await db.oracle.enqueue(
      "nobody",
      { secret: "theirs" },
      { tenant: "b", queue: "shared", key: "k2" },
    );
    const api = await server.client("operator", "a");
    const { items } = await api.listJobs();
    expect(items.map(({ job_id }) => job_id)).toEqual([mine.id]);
    for (const text of [theirs.id, "k2", "nobody"]) {
      const found = await api.listJobs({ query: { text } });
      expect(found.items.map(({ job_id }) => job_id)).not.toContain(theirs.id);
    }
    for (const name of [
      "getJob",
      "cancelJob",
      "retryJob",
      "getResult",
      "listAttempts",
      "verifyJob",
      "approveJob",
    ] as const) {
      await expect(api[name]({ params: { id: theirs.id } })).rejects.toMatchObject({ status: 404 });
    }
    await expect(api.replayJob({ params: { id: theirs.id }, body: {} })).rejects.toMatchObject({
      status: 404,
    });
    await expect(api.rejectJob({ params: { id: theirs.id }, body: { why: "x" } })).rejects.toMatchObject({
      status: 404,
    });
    expect(await api.cancelJobs({ body: { ids: [theirs.id] } })).toMatchObject({
      matched: { count: 0 },
      changed: 0,
    });
    expect(await api.cancelJobs({ body: { state: "PENDING", dry_run: true } })).toMatchObject({
      matched: { count: 1 },
    });
    expect((await api.listQueues()).items).toMatchObject([{ queue: "shared", ready: { count: 1 } }]);
    expect((await api.getStats()).waiting.ready).toEqual({ count: 1, more: false });
    await expect(api.listJobs({ query: { tenant: "b" } })).rejects.toMatchObject({ status: 403 });
    expect(await db.oracle.get(theirs.id)).toMatchObject({ state: "PENDING" });
  });

  it("may use each other's keys", async () => {
    const [a, b] = [await server.client("operator", "k1"), await server.client("operator", "k2")];
    const one = await a.enqueueJob({ body: { type: "x", input: 1 }, idempotencyKey: "same" });
    const two = await b.enqueueJob({ body: { type: "x", input: 2 }, idempotencyKey: "same" });
    expect(two).toMatchObject({ created: true, tenant_id: "k2" });
    expect(two.job_id).not.toBe(one.job_id);
  });

  it("are all seen, and acted for by name, with a token for all", async () => {
    const api = await server.client("operator");
    const { job_id: id } = await api.enqueueJob({
      query: { tenant: "named" },
      body: { type: "x", input: 1 },
    });
    expect((await api.listJobs({ query: { tenant: "named" } })).items.map(({ job_id }) => job_id)).toEqual([
      id,
    ]);
    expect((await api.listJobs()).items.map(({ job_id }) => job_id)).toContain(id);
    expect(await api.cancelJob({ params: { id } })).toMatchObject({ tenant_id: "named", state: "CANCELLED" });
    const { items } = await api.listJobs({ query: { text: id } });
    expect(items).toHaveLength(1);
  });

  it("have admins that make tokens for their own tenant only", async () => {
    const admin = await server.client("admin", "own");
    const made = await admin.addToken({ body: { tenant_id: "own", role: "viewer" } });
    await expect(admin.addToken({ body: { tenant_id: "else", role: "viewer" } })).rejects.toMatchObject({
      status: 403,
    });
    await expect(admin.addToken({ body: { tenant_id: null, role: "viewer" } })).rejects.toMatchObject({
      status: 403,
    });
    const foreign = await (await server.client("admin")).addToken({
      body: { tenant_id: null, role: "viewer" },
    });
    const { items } = await admin.listTokens();
    expect(items.every(({ tenant_id }) => tenant_id === "own")).toBe(true);
    expect(items.map(({ token_id }) => token_id)).toContain(made.token_id);
    await expect(admin.revokeToken({ params: { token: foreign.token_id } })).rejects.toMatchObject({
      status: 404,
    });
  });
});

describe("the table of statuses", () => {
  it("has every error code, and no refusal that looks like a success", () => {
    expect(Object.keys(statuses).sort()).toEqual(Object.keys(errorCodes).sort());
    for (const status of Object.values(statuses)) expect(status).toBeGreaterThanOrEqual(400);
  });
});
