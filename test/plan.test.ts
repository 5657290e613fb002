import { defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { until, useTestDatabase } from "./support/oracle.js";
import { rested, startHandler } from "./support/run.js";

const db = useTestDatabase();
const login = () => new URL(db.url).username;

interface Payment {
  to: string;
  cents: number;
}

/** Plans payments, then makes them; notes each call. */
function payments(list: Payment[], calls: unknown[]) {
  return async ({ plan, effect, step }: Parameters<Parameters<typeof startHandler>[1]>[0]) => {
    const due = await step("due", () => list);
    const effects = due.map((request) => ({
      key: `pay ${request.to}`,
      kind: "idempotent" as const,
      request: { ...request },
    }));
    await plan(effects);
    for (const one of effects) await effect(one, ({ request }) => calls.push(request));
    return calls.length;
  };
}

const two = [
  { to: "ada", cents: 100 },
  { to: "bob", cents: 200 },
];

describe("a plan", () => {
  it("makes no call until a person approves, and then exactly what it says", async () => {
    const calls: unknown[] = [];
    const { id, rested: planned, stop } = await startHandler(db, payments(two, calls), { approve: "person" });
    expect(await planned()).toMatchObject({ state: "PENDING", holdReason: "awaiting approval" });
    expect(calls).toEqual([]);
    const states = async () => (await db.oracle.effects(id)).map(({ name, state }) => [name, state]);
    expect(await states()).toEqual([
      ["pay ada", "PLANNED"],
      ["pay bob", "PLANNED"],
    ]);
    expect((await db.oracle.attempts(id))[0]).toMatchObject({ status: "RELEASED", cause: "PLANNED" });

    expect(await db.oracle.approve(id)).toMatchObject({ holdReason: null });
    expect(await rested(db, id)).toMatchObject({ state: "SUCCEEDED", attemptCount: 2, interruptions: 1 });
    expect(calls).toEqual(two);
    expect(await states()).toEqual([
      ["pay ada", "CONFIRMED"],
      ["pay bob", "CONFIRMED"],
    ]);
    const noted = await db.sql("SELECT action, login FROM oracle.audit WHERE job_id = $1", [id]);
    expect(noted).toEqual([{ action: "approve", login: login() }]);
    await stop();
  });

  it("that a person rejects ends the job and stays rejected", async () => {
    const calls: unknown[] = [];
    const { id, rested: planned, stop } = await startHandler(db, payments(two, calls), { approve: "person" });
    await planned();
    expect(await db.oracle.reject(id, "too much")).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "PLAN_REJECTED", message: "too much" },
    });
    await db.oracle.retry(id);
    expect(await rested(db, id)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "PLAN_REJECTED" },
    });
    expect(calls).toEqual([]);
    await expect(db.oracle.approve(id)).rejects.toMatchObject({ code: "JOB_PRECONDITION" });
    await stop();
  });

  it("passes by itself where the policy says so, and waits where it does not", async () => {
    const approve = (plan: readonly { request: unknown }[]) =>
      plan.reduce((sum, { request }) => sum + (request as Payment).cents, 0) <= 300;
    const calls: unknown[] = [];
    const small = await startHandler(db, payments(two, calls), { approve });
    expect(await small.rested()).toMatchObject({ state: "SUCCEEDED", attemptCount: 1 });
    expect(calls).toHaveLength(2);
    expect((await db.oracle.effects(small.id))[0]).toMatchObject({ approvedBy: "policy" });
    const large = await startHandler(db, payments([...two, { to: "eve", cents: 1 }], calls), { approve });
    expect(await large.rested()).toMatchObject({ holdReason: "awaiting approval" });
    expect(calls).toHaveLength(2);
    await small.stop();
    await large.stop();
  });

  it("is what was recorded: another one, or an effect beside it, is refused", async () => {
    let calls = 0;
    const other = await startHandler(
      db,
      async ({ plan, job }) => plan([{ key: "pay", kind: "idempotent", request: job.attemptNo }]),
      { approve: "person" },
    );
    await other.rested();
    await db.oracle.approve(other.id);
    expect(await rested(db, other.id)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "EFFECT_CONFLICT" },
    });
    const beside = await startHandler(
      db,
      async ({ plan, effect }) => {
        await plan([{ key: "a", kind: "idempotent", request: 1 }]);
        await effect({ key: "b", kind: "idempotent", request: 1 }, () => ++calls);
      },
      { approve: () => true },
    );
    expect(await beside.rested()).toMatchObject({ error: { code: "EFFECT_NOT_PLANNED" } });
    const before = await startHandler(
      db,
      ({ effect }) => effect({ key: "b", kind: "idempotent", request: 1 }, () => ++calls),
      { approve: () => true },
    );
    expect(await before.rested()).toMatchObject({ error: { code: "EFFECT_NOT_PLANNED" } });
    expect(calls).toBe(0);
    for (const { stop } of [other, beside, before]) await stop();
  });

  it("that is not carried out keeps the job from succeeding", async () => {
    const { rested: ended, stop } = await startHandler(
      db,
      async ({ plan }) => {
        await plan([{ key: "a", kind: "idempotent", request: 1 }]);
        return "nothing sent";
      },
      { approve: () => true },
    );
    expect(await ended()).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_OPEN" } });
    await stop();
  });

  it("that was swallowed by the handler holds the job all the same", async () => {
    const { rested: held, stop } = await startHandler(
      db,
      async ({ plan }) => {
        await plan([{ key: "a", kind: "idempotent", request: 1 }]).catch(() => {});
        return "as if nothing had been";
      },
      { approve: "person" },
    );
    expect(await held()).toMatchObject({ state: "PENDING", holdReason: "awaiting approval" });
    await stop();
  });

  it("waits without losing a try", async () => {
    const {
      id,
      rested: planned,
      stop,
    } = await startHandler(db, payments(two, []), {
      approve: "person",
      maxAttempts: 1,
    });
    await planned();
    await db.oracle.approve(id);
    expect((await rested(db, id)).state).toBe("SUCCEEDED");
    await stop();
  });

  it("cannot be decided about twice, nor where there is none", async () => {
    const { id, rested: planned, stop } = await startHandler(db, payments(two, []), { approve: "person" });
    await planned();
    await db.oracle.cancel(id);
    await expect(db.oracle.approve(id)).rejects.toMatchObject({ code: "JOB_PRECONDITION" });
    await expect(db.oracle.reject(id, "x")).rejects.toMatchObject({ code: "JOB_PRECONDITION" });
    await stop();
  });
});

describe("SQL that commits with the result", () => {
  const table =
    "CREATE TABLE IF NOT EXISTS public.orders (id int PRIMARY KEY, by_login text DEFAULT current_user)";

  it("is there when the job has succeeded, by the login's hand, and on record as an effect", async () => {
    await db.sql(table);
    const {
      id,
      rested: ended,
      stop,
    } = await startHandler(db, ({ onCommit, job }) => {
      onCommit("order", "INSERT INTO public.orders (id) VALUES ($1)", [job.attemptNo]);
      return "ordered";
    });
    expect((await ended()).state).toBe("SUCCEEDED");
    expect(await db.sql("SELECT * FROM public.orders")).toEqual([{ id: 1, by_login: login() }]);
    expect(await db.oracle.effects(id)).toMatchObject([
      {
        name: "order",
        kind: "database",
        state: "CONFIRMED",
        request: { sql: "INSERT INTO public.orders (id) VALUES ($1)", values: [1] },
      },
    ]);
    await stop();
  });

  it("takes the result with it when it fails, and is tried again", async () => {
    await db.sql(table);
    await db.sql("DELETE FROM public.orders");
    const {
      id,
      rested: ended,
      stop,
    } = await startHandler(db, ({ onCommit, job }) => {
      onCommit("first", "INSERT INTO public.orders (id) VALUES ($1)", [job.attemptNo]);
      onCommit("second", "INSERT INTO public.orders (id) VALUES ($1)", [job.attemptNo === 1 ? 1 : 7]);
      return "ordered";
    });
    expect(await ended()).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect((await db.oracle.attempts(id))[0]).toMatchObject({ cause: "COMMIT_FAILED", status: "FAILED" });
    expect(await db.sql("SELECT id FROM public.orders ORDER BY id")).toEqual([{ id: 2 }, { id: 7 }]);
    expect(await db.oracle.effects(id)).toHaveLength(2);
    await stop();
  });

  it.each([
    ["COMMIT", /ended the transaction/],
    ["SELECT 1; SELECT 2", /multiple commands/],
    ["UPDATE oracle.results SET result_payload = '2'", /never changes|permission denied/],
    ["", /no SQL/],
    ["COPY public.orders FROM STDIN", /COPY/],
    [
      "SELECT FROM public.nowhere",
      /^A statement given to onCommit failed: odd: relation "public.nowhere" does not exist\.$/,
    ],
  ])("refuses %j", async (sql, message) => {
    const {
      id,
      rested: ended,
      stop,
    } = await startHandler(
      db,
      ({ onCommit }) => {
        onCommit("odd", sql);
        return "done";
      },
      { maxAttempts: 1 },
    );
    const job = await ended();
    expect(job.state).toBe("FAILED_TERMINAL");
    expect(job.error?.message).toMatch(message);
    expect(await db.oracle.result(id)).toBeUndefined();
    await stop();
  });

  it("that waits holds up no job beside it, and fails when it has waited too long", async () => {
    const queue = "commit-waits";
    const anything = z.any();
    const waiting = defineJob({
      type: "waiting",
      input: anything,
      output: anything,
      run({ onCommit, job }) {
        onCommit("lock", "SELECT pg_advisory_xact_lock(4711)");
        if (job.attemptNo === 1) onCommit("hurry", "SELECT set_config('statement_timeout', '50', true)");
        if (job.attemptNo === 1) onCommit("sleep", "SELECT pg_sleep(30)");
        return "waited";
      },
      backoff: { kind: "fixed", baseSeconds: 0.01 },
    });
    const plain = defineJob({ type: "plain", input: anything, output: anything, run: () => "done" });
    const worker = await db.worker({ jobs: [waiting, plain], queues: [queue] });
    const slow = await db.oracle.db.transaction(async (client) => {
      await client.query({ text: "SELECT pg_advisory_xact_lock(4711)" });
      const slow = await db.oracle.enqueue(waiting, {}, { queue });
      await until("it to wait", async () => {
        const waits = await db.sql("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
        return waits.length > 0;
      });
      const beside = await db.oracle.enqueue(plain, {}, { queue });
      expect(await beside.result({ timeoutSeconds: 15 })).toBe("done");
      expect(await slow.state()).toBe("RUNNING");
      return slow;
    });
    expect(await slow.result({ timeoutSeconds: 30 })).toBe("waited");
    const [first] = await db.oracle.attempts(slow.id);
    expect(first).toMatchObject({
      cause: "COMMIT_FAILED",
      error: { message: expect.stringMatching(/^.*sleep: .*timeout/) },
    });
    await worker.stop();
  });

  it("does not happen for an attempt that has lost its job", async () => {
    const { claimFrom, expireLease, workerDatabase } = await import("./support/leases.js");
    const { settle } = await import("../dist/store/settle.js");
    await db.sql(table);
    await db.sql("DELETE FROM public.orders");
    const store = workerDatabase(db);
    await db.oracle.enqueue("any", {}, { queue: "commit-loser" });
    const [lease] = (await claimFrom(store, "commit-loser")).leases;
    await expireLease(db, lease?.jobId as string);
    await db.oracle.acquire(lease?.jobId as string, "thief");
    const statements = [{ name: "o", seq: 1, sql: "INSERT INTO public.orders (id) VALUES (9)", values: [] }];
    const outcome = {
      kind: "succeeded",
      resultText: "1",
      contentHash: "h",
      recorded: true,
      commits: { statements, delaySeconds: 0 },
    } as const;
    expect((await settle(store, [{ lease, outcome } as never])).size).toBe(0);
    expect(await db.sql("SELECT 1 FROM public.orders")).toEqual([]);
    expect((await db.oracle.attempts(lease?.jobId as string))[0]).toMatchObject({
      status: "SUPERSEDED",
      lateOutput: { kind: "succeeded", result: 1 },
    });
    await store.close();
  });
});
