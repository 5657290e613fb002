import { beforeAll, describe, expect, it } from "vitest";
import { ApiError, type Client } from "../dist/http/client.js";
import { useServer } from "./support/http.js";
import { echo, flaky, nap } from "./support/jobs.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const server = useServer(db);
let api: Client;
beforeAll(async () => {
  api = await server.client("operator");
});

const refusal = (status: number, code: string, field?: string) => ({
  status,
  code,
  ...(field === undefined ? {} : { field }),
});

describe("POST /jobs", () => {
  const body = { type: "nobody", input: { text: "hello" } };

  it("answers 201 for a new job, 200 for the same again, 409 for another under its key", async () => {
    const token = await server.token("operator");
    const post = (idempotencyKey: string, sent: unknown) =>
      server.fetch("/jobs", {
        method: "POST",
        token,
        headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
        body: JSON.stringify(sent),
      });
    const first = await post("doc-1", body);
    const { job_id, ...rest } = (await first.json()) as Record<string, unknown>;
    expect(first.status).toBe(201);
    expect(rest).toEqual({
      tenant_id: "default",
      type: "nobody",
      state: "PENDING",
      created: true,
      joined: null,
    });
    const second = await post("doc-1", body);
    expect(second.status).toBe(200);
    expect(await second.json()).toMatchObject({ job_id, created: false, joined: "key" });
    const third = await post("doc-1", { ...body, input: { text: "else" } });
    expect(third.status).toBe(409);
    expect(await third.json()).toMatchObject({
      status: 409,
      error: { code: "IDEMPOTENCY_CONFLICT", field: "key", job_id },
    });
  });

  it("stores every option", async () => {
    const { job_id } = await api.enqueueJob({
      body: {
        ...body,
        queue: "options",
        priority: 7,
        run_after: "2030-01-02T03:04:05.000Z",
        deadline: "2031-01-02T03:04:05+02:00",
        max_attempts: 9,
        timeout_seconds: 77,
        version: "v9",
      },
    });
    expect(await api.getJob({ params: { id: job_id } })).toMatchObject({
      queue: "options",
      priority: 7,
      run_after: "2030-01-02T03:04:05.000Z",
      deadline: "2031-01-02T01:04:05.000Z",
      max_attempts: 9,
      timeout_seconds: 77,
      handler_version: "v9",
      input: { text: "hello" },
      progress: null,
    });
  });

  it("joins an unfinished twin when asked to", async () => {
    const sent = { body: { type: "twin", input: { n: 1 }, dedupe: "active" as const } };
    const { job_id } = await api.enqueueJob(sent);
    expect(await api.enqueueJob(sent)).toMatchObject({
      job_id,
      created: false,
      joined: "active",
      state: "PENDING",
    });
  });

  it.each([
    [{ input: 1 }, "$.type"],
    [{ type: "x" }, "$.input"],
    [{ type: "", input: 1 }, "$.type"],
    [{ type: "x", input: 1, priority: 1.5 }, "$.priority"],
    [{ type: "x", input: 1, run_after: "tomorrow" }, "$.run_after"],
    [{ type: "x", input: 1, run_after: "2030-02-30T00:00:00Z" }, "$.run_after"],
    [{ type: "x", input: 1, colour: "red" }, "$.colour"],
    [{ type: "x", input: 1, tenant: "other" }, "$.tenant"],
    [[], "$"],
  ])("refuses %j and names the place", async (sent, field) => {
    await expect(api.enqueueJob({ body: sent as never })).rejects.toMatchObject(
      refusal(422, "INVALID_ARGUMENT", field),
    );
  });
});

describe("one job", () => {
  it("is shown with its input, attempts, result and hashes", async () => {
    await db.worker({ jobs: [echo], queues: ["one"] });
    const { job_id: id } = await api.enqueueJob({ body: { type: "echo", input: { n: 5 }, queue: "one" } });
    await db.oracle.wait(id);
    const params = { id };
    expect(await api.getJob({ params })).toMatchObject({ state: "SUCCEEDED", error: null, input: { n: 5 } });
    const { items: attempts } = await api.listAttempts({ params });
    expect(attempts).toMatchObject([{ attempt_no: 1, status: "SUCCEEDED", late_output: null }]);
    expect(await api.getResult({ params })).toMatchObject({
      result: { n: 5 },
      attempt_id: attempts[0]?.attempt_id,
    });
    const verified = await api.verifyJob({ params });
    expect(verified).toMatchObject({ verified: true });
    expect(verified.checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["spec_hash", "content_hash", "provenance_hash"]),
    );
    for (const list of [api.listSteps, api.listJobEffects, api.listArtifacts, api.listLogs]) {
      expect(await list({ params })).toEqual({ items: [], next: null });
    }
  });

  it("has no result before it has succeeded, and says what it is", async () => {
    const { job_id: id } = await api.enqueueJob({ body: { type: "nobody", input: 1 } });
    const asked = api.getResult({ params: { id } });
    await expect(asked).rejects.toMatchObject(refusal(409, "JOB_PRECONDITION"));
    await expect(asked).rejects.toThrow(/PENDING/);
  });

  it.each([
    "getJob",
    "getResult",
    "verifyJob",
    "listAttempts",
    "listLogs",
    "listSteps",
    "listJobEffects",
  ] as const)("%s: 404 for one that is not there, 422 for what is no id", async (name) => {
    const ask = (id: string) => api[name]({ params: { id } });
    await expect(ask("00000000-0000-7000-8000-000000000000")).rejects.toMatchObject(
      refusal(404, "JOB_NOT_FOUND"),
    );
    await expect(ask("nonsense")).rejects.toMatchObject(refusal(422, "INVALID_ARGUMENT", "id"));
  });

  it("is cancelled, retried and replayed, with the same input or another", async () => {
    const { job_id: id } = await api.enqueueJob({
      body: { type: "nobody", input: { a: 1 }, queue: "steer" },
    });
    const params = { id };
    expect(await api.cancelJob({ params })).toMatchObject({ state: "CANCELLED" });
    await expect(api.approveJob({ params })).rejects.toMatchObject(refusal(409, "JOB_PRECONDITION"));
    expect(await api.retryJob({ params })).toMatchObject({ state: "PENDING" });
    await expect(api.retryJob({ params })).rejects.toMatchObject(refusal(409, "JOB_PRECONDITION"));
    const same = await api.replayJob({ params, body: {} });
    const other = await api.replayJob({ params, body: { input: { a: 2 } } });
    expect(await api.getJob({ params: { id: same.job_id } })).toMatchObject({
      replay_of: id,
      input: { a: 1 },
      queue: "steer",
    });
    expect(await api.getJob({ params: { id: other.job_id } })).toMatchObject({
      replay_of: id,
      input: { a: 2 },
    });
    await expect(api.replayJob({ params, body: { from_step: "x" } })).rejects.toMatchObject(
      refusal(422, "INVALID_ARGUMENT"),
    );
  });

  it("is cancelled while it runs", async () => {
    await db.worker({ jobs: [nap], queues: ["running"] });
    const { job_id: id } = await api.enqueueJob({
      body: { type: "nap", input: { ms: 60_000 }, queue: "running" },
    });
    const params = { id };
    await until("it runs", async () => (await api.getJob({ params })).state === "RUNNING");
    expect(await api.cancelJob({ params })).toMatchObject({
      state: "RUNNING",
      cancel_requested_at: expect.any(String),
    });
    await until("it ends", async () => (await api.getJob({ params })).state === "CANCELLED");
  });
});

describe("GET /jobs", () => {
  /** The ids on all pages of a list. */
  async function pages(filter: { queue?: string; type?: string; tenant?: string; text?: string }) {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { ...filter, limit: 7, ...(cursor === undefined ? {} : { cursor }) };
      const page = await api.listJobs({ query });
      expect(page.items.length).toBeLessThanOrEqual(7);
      seen.push(...page.items.map(({ job_id }) => job_id));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    return seen;
  }

  it("pages through everything, newest first, each job once", async () => {
    const made = await db.oracle.enqueueMany("paged", [...Array(25).keys()], { queue: "paged" });
    expect(await pages({ queue: "paged" })).toEqual(made.map(({ id }) => id).reverse());
  });

  it("finds the one it is asked for among thousands of types and queues", { timeout: 120_000 }, async () => {
    const counts = [...Array(2100).keys()];
    const lines = counts.map((n) => JSON.stringify({ type: `among-${n}`, input: n, queue: `among-${n}` }));
    const token = await server.token("operator");
    const headers = { "content-type": "application/x-ndjson" };
    const stored = await server.fetch("/jobs/bulk?tenant=among", {
      method: "POST",
      token,
      headers,
      body: lines.join("\n"),
    });
    const answers = (await stored.text())
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    // By name the first and the last.
    for (const n of [0, 999]) {
      const own = [answers[n].job_id];
      expect(await pages({ queue: `among-${n}` }), "queue").toEqual(own);
      expect(await pages({ type: `among-${n}` }), "type").toEqual(own);
      expect(await pages({ queue: `among-${n}`, tenant: "among" }), "queue of a tenant").toEqual(own);
      expect(await pages({ type: `among-${n}`, tenant: "among" }), "type of a tenant").toEqual(own);
    }
    expect(await pages({ text: "among-1777" }), "text").toEqual([answers[1777].job_id]);
  });

  it("refuses cursors, parameters and values that it does not know", async () => {
    const token = await server.token("viewer");
    for (const query of [
      "cursor=abc",
      "colour=red",
      "limit=0",
      "limit=501",
      "limit=x",
      "state=DONE",
      "limit=1&limit=2",
      "held=maybe",
    ]) {
      const response = await server.fetch(`/jobs?${query}`, { token });
      expect(response.status, query).toBe(422);
    }
  });
});

describe("many jobs at once", () => {
  it("counts before it retries, and retries a thousand at a time", async () => {
    const worker = await db.worker({ jobs: [flaky], queues: ["dead"] });
    await db.oracle.enqueueMany(
      "flaky",
      Array.from({ length: 1100 }, () => ({ failures: 9, how: "terminal" as const })),
      { queue: "dead" },
    );
    await worker.drained();
    await worker.stop();
    const filter = { state: "FAILED_TERMINAL" as const, queue: "dead" };
    expect(await api.retryJobs({ body: { ...filter, dry_run: true } })).toEqual({
      matched: { count: 1100, more: false },
      changed: 0,
      next: null,
    });
    const first = await api.retryJobs({ body: filter });
    expect(first).toMatchObject({ matched: { count: 1000, more: true }, changed: 1000 });
    const second = await api.retryJobs({ body: { ...filter, cursor: first.next as string } });
    expect(second).toEqual({ matched: { count: 100, more: false }, changed: 100, next: null });
    expect((await api.listJobs({ query: { ...filter } })).items).toEqual([]);

    const cancelled = await api.cancelJobs({ body: { state: "PENDING", queue: "dead" } });
    expect(cancelled).toMatchObject({ changed: 1000 });
  });

  it("takes ids, and leaves alone what cannot be changed", async () => {
    const open = await db.oracle.enqueue("nobody", 1);
    const done = await db.oracle.enqueue("nobody", 2);
    await done.cancel();
    const ids = [open.id, done.id, "00000000-0000-7000-8000-000000000000"];
    expect(await api.cancelJobs({ body: { ids } })).toEqual({
      matched: { count: 1, more: false },
      changed: 1,
      next: null,
    });
  });

  it("does not take an empty filter for every job there is", async () => {
    for (const body of [{}, { queue: "default" }, { state: "SUCCEEDED" as const }]) {
      await expect(api.cancelJobs({ body })).rejects.toMatchObject(
        refusal(422, "INVALID_ARGUMENT", "$.state"),
      );
      await expect(api.retryJobs({ body })).rejects.toMatchObject(
        refusal(422, "INVALID_ARGUMENT", "$.state"),
      );
    }
  });
});

describe("the rest", () => {
  it("pauses and resumes a queue, and shows what waits", async () => {
    await db.oracle.enqueueMany("nobody", [1, 2, 3], { queue: "calm" });
    expect(await api.pauseQueue({ params: { queue: "calm" } })).toMatchObject({
      queue: "calm",
      paused: true,
      ready: { count: 3, more: false },
      running: 0,
      oldest_ready_at: expect.any(String),
    });
    expect(await api.resumeQueue({ params: { queue: "calm" } })).toMatchObject({ paused: false });
    const { items } = await api.listQueues();
    expect(items.map(({ queue }) => queue)).toContain("calm");
  });

  it("shows workers, figures, and what nobody serves", async () => {
    const worker = await db.worker({ jobs: [echo], queues: ["figures"], workerId: "counter" });
    await db.oracle.enqueueMany(
      "echo",
      Array.from({ length: 30 }, (_, n) => ({ n })),
      { queue: "figures", tenant: "counted" },
    );
    await worker.drained();
    const { items } = await api.listWorkers();
    expect(items.find(({ worker_id }) => worker_id === "counter")).toMatchObject({
      alive: true,
      types: ["echo"],
      queues: ["figures"],
    });
    await worker.stop();
    const stats = await (await server.client("viewer", "counted")).getStats({ query: { window: "15m" } });
    expect(stats).toMatchObject({ window_seconds: 900, bucket_seconds: 10 });
    expect(stats.buckets).toHaveLength(91);
    expect(stats.buckets.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(30);
    expect(stats.run).toMatchObject({ of: 30 });
    await db.oracle.enqueue("unheard", 1, { tenant: "counted", queue: "figures" });
    const again = await (await server.client("viewer", "counted")).getStats({ query: { window: "5m" } });
    expect(again.attention.unserved_types).toEqual([{ type: "unheard", waiting: { count: 1, more: false } }]);
    expect(again.waiting).toMatchObject({ ready: { count: 1, more: false }, running: 0 });
  });

  it("shows settings, but no password", async () => {
    const { items } = await api.listSettings();
    const named = Object.fromEntries(items.map((item) => [item.name, item]));
    expect(named.LEASE_SECONDS).toMatchObject({ value: "60", is_default: true });
    expect(named.DATABASE_URL?.value).toBe("(set)");
    expect(JSON.stringify(items)).not.toContain("postgresql://");
  });

  it("lets only dev be crashed", async () => {
    const admin = await server.client("admin");
    await expect(admin.crashWorker()).rejects.toMatchObject(refusal(404, "NOT_FOUND"));
  });

  it("says who the caller is", async () => {
    expect(await (await server.client("viewer", "team-a")).getSession()).toEqual({
      role: "viewer",
      tenant_id: "team-a",
      via: "bearer",
      dev: false,
      version: expect.stringMatching(/^\d+\.\d+/),
    });
  });

  it("keeps a text that looks like a page what it is", async () => {
    const xss = `<img src=x onerror=alert(1)>"'\u2028</script>`;
    const { job_id: id } = await api.enqueueJob({
      body: { type: xss, queue: xss, input: { [xss]: xss } },
      idempotencyKey: "x<b>",
    });
    expect(await api.getJob({ params: { id } })).toMatchObject({
      type: xss,
      queue: xss,
      input: { [xss]: xss },
      idempotency_key: "x<b>",
    });
    const token = await server.token("viewer");
    const response = await server.fetch(`/jobs/${id}`, { token });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const missing = await server.fetch(`/${encodeURIComponent(xss)}`, { token });
    expect(missing.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  });

  it("throws what the server says, as an ApiError", async () => {
    await expect(api.getJob({ params: { id: "x" } })).rejects.toBeInstanceOf(ApiError);
  });
});
