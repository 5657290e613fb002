import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { echo } from "./support/jobs.js";
import { useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const login = useLogins(db);

const count = async (key: string) =>
  (await db.sql("SELECT count(*)::int AS n FROM oracle.jobs WHERE idempotency_key LIKE $1", [`${key}%`]))[0]
    ?.n;

describe("one submission", () => {
  it("stores the documented defaults and is ready at once", async () => {
    const job = await db.oracle.enqueue("type_a", { a: 1 });
    expect(job.created).toBe(true);
    const [row] = await db.sql("SELECT * FROM oracle.jobs WHERE job_id = $1", [job.id]);
    expect(row).toMatchObject({
      tenant_id: "default",
      queue_name: "default",
      idempotency_key: job.id,
      state: "PENDING",
      priority: 0,
      attempt_count: 0,
      max_attempts: 3,
      input_payload: { a: 1 },
    });
    expect(await db.sql("SELECT 1 FROM oracle.ready_jobs WHERE job_id = $1", [job.id])).toHaveLength(1);
  });

  it("waits in timers while its time has not come", async () => {
    const job = await db.oracle.enqueue("type_a", {}, { runAfter: 3600 });
    expect(await db.sql("SELECT 1 FROM oracle.ready_jobs WHERE job_id = $1", [job.id])).toHaveLength(0);
    expect(await db.sql("SELECT kind FROM oracle.timers WHERE job_id = $1", [job.id])).toEqual([
      { kind: "run" },
    ]);
  });

  it("gives the same job for the same key and specification", async () => {
    const first = await db.oracle.enqueue("type_a", { b: 2, a: 1 }, { key: "same" });
    const second = await db.oracle.enqueue("type_a", { a: 1, b: 2 }, { key: "same" });
    expect(second).toMatchObject({ id: first.id, created: false, joined: "key" });
  });

  it("refuses the same key with another input and names the job", async () => {
    const first = await db.oracle.enqueue("type_a", { a: 1 }, { key: "taken" });
    await expect(db.oracle.enqueue("type_a", { a: 2 }, { key: "taken" })).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
      jobId: first.id,
      field: "key",
    });
  });

  it("keeps keys of tenants apart", async () => {
    const a = await db.oracle.enqueue("type_a", {}, { key: "shared", tenant: "a" });
    const b = await db.oracle.enqueue("type_a", { other: 1 }, { key: "shared", tenant: "b" });
    expect(b.created).toBe(true);
    expect(b.id).not.toBe(a.id);
  });

  it("makes one job of a race", async () => {
    const handles = await Promise.all(
      Array.from({ length: 20 }, () => db.oracle.enqueue("type_a", { race: 1 }, { key: "race" })),
    );
    expect(new Set(handles.map((handle) => handle.id)).size).toBe(1);
    expect(handles.filter((handle) => handle.created)).toHaveLength(1);
  });

  it.each([
    ["priority", { priority: 1.5 }],
    ["priority", { priority: 1e9 }],
    ["maxAttempts", { maxAttempts: 0 }],
    ["timeoutSeconds", { timeoutSeconds: -1 }],
    ["runAfter", { runAfter: -5 }],
    ["runAfter", { runAfter: new Date(Number.NaN) }],
    ["queue", { queue: "" }],
    ["queue", { queue: "q".repeat(201) }],
    ["key", { key: "nul\0" }],
    ["dedupe", { dedupe: "maybe" as "active" }],
  ])("names the field when %s is wrong, and stores nothing", async (field, options) => {
    const before = await count("");
    await expect(db.oracle.enqueue("type_a", {}, options)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      field,
    });
    expect(await count("")).toBe(before);
  });

  it.each([
    ["$.a", { a: "nul \0" }, "PAYLOAD_REJECTED"],
    ["$.a[1]", { a: [0, Number.NaN] }, "PAYLOAD_REJECTED"],
    ["$.text", { text: "\ud800" }, "PAYLOAD_REJECTED"],
    ["$", { big: "x".repeat(1_048_576) }, "PAYLOAD_TOO_LARGE"],
  ])("refuses a payload at %s", async (field, input, code) => {
    await expect(db.oracle.enqueue("type_a", input)).rejects.toMatchObject({ code, field });
  });

  it("checks a definition's input schema before anything is stored", async () => {
    await expect(db.oracle.enqueue(echo, { n: "x" as unknown as number })).rejects.toMatchObject({
      code: "INPUT_INVALID",
      field: "$.n",
    });
  });
});

describe("many at once", () => {
  it("keeps their order and makes them all ready", async () => {
    const handles = await db.oracle.enqueueMany(
      echo,
      Array.from({ length: 4500 }, (_, n) => ({ n })),
      { queue: "bulk" },
    );
    expect(handles).toHaveLength(4500);
    const [row] = await db.sql("SELECT count(*)::int AS n FROM oracle.ready_jobs WHERE queue_name = 'bulk'");
    expect(row?.n).toBe(4500);
    const [third] = await db.sql("SELECT input_payload FROM oracle.jobs WHERE job_id = $1", [handles[2]?.id]);
    expect(third?.input_payload).toEqual({ n: 2 });
  });

  it("keeps every character of texts, keys and names", async () => {
    const texts = [
      "",
      "NULL",
      'a "quoted" word',
      "back\\slash\\",
      "{a,b}",
      "line\nfeed\ttab",
      "\u2028 \u007f",
      "Zürich 😀",
      "\u0001",
    ];
    const keys = texts.map((text) => `key ${text}`);
    const options = { keys, queue: 'q"\\,{}\n', version: "v\\1" };
    const handles = await db.oracle.enqueueMany('type "\\"', texts, options);
    const jobs = await Promise.all(handles.map(({ id }) => db.oracle.get(id)));
    expect(jobs.map((job) => job?.input)).toEqual(texts);
    expect(jobs.map((job) => job?.idempotencyKey)).toEqual(keys);
    expect(jobs[0]).toMatchObject({
      type: 'type "\\"',
      queue: options.queue,
      handlerVersion: options.version,
    });
    expect(new Set(jobs.map((job) => job?.queue)).size).toBe(1);
  });

  it("stores nothing of a batch with one conflicting key", async () => {
    await db.oracle.enqueue(echo, { n: 1 }, { key: "batch-2" });
    const inputs = Array.from({ length: 5 }, (_, n) => ({ n: n + 100 }));
    const keys = inputs.map((_, n) => `batch-${n}`);
    await expect(db.oracle.enqueueMany(echo, inputs, { keys })).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
    expect(await count("batch-")).toBe(1);
  });

  it("two batches with the same keys in opposite order both end well", async () => {
    const keys = Array.from({ length: 300 }, (_, n) => `opposite-${n}`);
    const inputs = keys.map((_, n) => ({ n }));
    const [a, b] = await Promise.all([
      db.oracle.enqueueMany(echo, inputs, { keys }),
      db.oracle.enqueueMany(echo, inputs.toReversed(), { keys: keys.toReversed() }),
    ]);
    expect(new Set([...a, ...b].map((handle) => handle.id)).size).toBe(300);
    expect([...a, ...b].filter((handle) => handle.created)).toHaveLength(300);
  });
});

describe("the same rows once more, after a lost reply", () => {
  const prepared = () => Promise.all([1, 2, 3].map((n) => db.oracle.prepare("again", { n }, {})));
  const stored = (ids: string[]) =>
    db.sql("SELECT job_id FROM oracle.jobs JOIN oracle.ready_jobs USING (job_id) WHERE job_id = ANY ($1)", [
      ids,
    ]);

  it("are stored once", async () => {
    const rows = await prepared();
    const ids = rows.map((row) => row.jobId);
    await db.oracle.submitter.many(rows);
    expect(await db.oracle.submitter.many(rows)).toEqual(
      ids.map((jobId) => ({ jobId, created: true, joined: null })),
    );
    expect(await stored(ids)).toHaveLength(3);
  });

  it("are found when the first try ends during the second", async () => {
    const rows = await prepared();
    const first = new pg.Client(db.url);
    await first.connect();
    await first.query("BEGIN");
    await db.oracle.submitter.many(rows, first);
    const second = db.oracle.submitter.many(rows);
    await until("the second waits", async () => {
      const waiting = "SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted";
      return (await db.sql(waiting)).length > 0;
    });
    await first.query("COMMIT");
    await first.end();
    expect((await second).map(({ jobId }) => jobId)).toEqual(rows.map((row) => row.jobId));
    expect(await stored(rows.map((row) => row.jobId))).toHaveLength(3);
  });
});

describe("in the caller's transaction", () => {
  it("appears with the commit and vanishes with the rollback", async () => {
    const client = new pg.Client(db.url);
    await client.connect();
    for (const end of ["ROLLBACK", "COMMIT"]) {
      await client.query("BEGIN");
      const job = await db.oracle.enqueue("type_a", {}, { client });
      expect(await db.oracle.get(job.id)).toBeUndefined();
      await client.query(end);
      expect((await db.oracle.get(job.id))?.state).toBe(end === "COMMIT" ? "PENDING" : undefined);
    }
    await client.end();
  });
});

describe("dedupe", () => {
  it("active joins the unfinished twin, also in a race", async () => {
    // The first is not committed when the others ask: a look before the insert would not see it.
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("BEGIN");
    const first = await db.oracle.enqueue("type_d", { x: 1 }, { dedupe: "active", client });
    const others = Promise.all(
      Array.from({ length: 5 }, () => db.oracle.enqueue("type_d", { x: 1 }, { dedupe: "active" })),
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    await client.query("COMMIT");
    await client.end();
    const handles = [first, ...(await others)];
    expect(new Set(handles.map((handle) => handle.id)).size).toBe(1);
    expect(handles.filter((handle) => handle.joined === "active")).toHaveLength(5);
  });

  it("active makes a new job once the twin has ended", async () => {
    const first = await db.oracle.enqueue("type_d", { x: 2 }, { dedupe: "active" });
    await db.oracle.cancel(first.id);
    const second = await db.oracle.enqueue("type_d", { x: 2 }, { dedupe: "active" });
    expect(second.created).toBe(true);
  });

  it("result joins a succeeded twin", async () => {
    const first = await db.oracle.enqueue(echo, { n: 77 }, { queue: "dedupe" });
    const worker = await db.worker({ jobs: [echo], queues: ["dedupe"] });
    await first.result({ timeoutSeconds: 10 });
    await worker.stop();
    const second = await db.oracle.enqueue(echo, { n: 77 }, { dedupe: "result" });
    expect(second).toMatchObject({ id: first.id, created: false, joined: "result" });
    expect(await second.result()).toEqual({ n: 77 });
    expect((await db.oracle.enqueue(echo, { n: 78 }, { dedupe: "result" })).created).toBe(true);
  });
});

describe("by SQL", () => {
  it("the function computes the same hash, joins by key and refuses another specification", async () => {
    const call = "SELECT * FROM oracle.enqueue('type_s', $1, key => $2)";
    const [first] = await db.as("worker", call, ['{"b": 1.0, "a": "ü"}', "sql"]);
    expect(first?.created).toBe(true);
    expect(await db.as("worker", call, ['{"a": "ü", "b": 1}', "sql"])).toEqual([
      { ...first, created: false },
    ]);
    const joined = await db.oracle.enqueue("type_s", { a: "ü", b: 1 }, { key: "sql" });
    expect(joined).toMatchObject({ id: first?.job_id, created: false });
    await expect(db.as("worker", call, ["{}", "sql"])).rejects.toThrow(/IDEMPOTENCY_CONFLICT/);
  });

  it("refuses payloads the program would refuse", async () => {
    const call = "SELECT * FROM oracle.enqueue('type_s', $1)";
    const deep = "[".repeat(65) + "]".repeat(65);
    await expect(db.as("worker", call, [deep])).rejects.toThrow(/PAYLOAD_TOO_DEEP/);
    await expect(db.as("worker", call, ["12345678901234567890"])).rejects.toThrow(/PAYLOAD_REJECTED/);
  });

  it("a key that is another job's id joins that job", async () => {
    const first = await db.oracle.enqueue("type_s", { own: 1 });
    expect(await db.oracle.enqueue("type_s", { own: 1 }, { key: first.id })).toMatchObject({
      id: first.id,
      created: false,
    });
    await expect(db.oracle.enqueue("type_s", { own: 2 }, { key: first.id })).rejects.toMatchObject({
      code: "IDEMPOTENCY_CONFLICT",
    });
    const [row] = await db.as("worker", `SELECT * FROM oracle.enqueue('type_s', '{"own": 1}', key => $1)`, [
      first.id,
    ]);
    expect(row).toEqual({ job_id: first.id, created: false });
  });

  it("a tenant's login sees and writes its own tenant only, and needs not name it", async () => {
    await db.oracle.enqueue("type_t", {}, { tenant: "theirs" });
    const client = await (await login({ tenantId: "mine" })).connect();
    const { rows } = await client.query("SELECT * FROM oracle.enqueue('type_t', '{}')");
    const seen = await client.query("SELECT DISTINCT tenant_id FROM oracle.jobs");
    expect(seen.rows).toEqual([{ tenant_id: "mine" }]);
    await expect(
      client.query("SELECT * FROM oracle.enqueue('type_t', '{}', tenant_id => 'theirs')"),
    ).rejects.toThrow(/row-level security/);
    expect((await db.oracle.get(rows[0].job_id))?.tenantId).toBe("mine");
  });

  it("a job id nobody has is not found", async () => {
    expect(await db.oracle.get(randomUUID())).toBeUndefined();
    await expect(db.oracle.get("nonsense")).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "id" });
  });
});
