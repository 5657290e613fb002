import { isDeepStrictEqual } from "node:util";
import { defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { verifyJob } from "../dist/verify.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const backoff = { kind: "fixed", baseSeconds: 0.02 } as const;
const anything = z.any();

/** Runs one job of a handler in a queue of its own to its end. */
async function runToEnd(run: Parameters<typeof defineJob>[0]["run"], options: { maxAttempts?: number } = {}) {
  const type = `steps-${Math.random()}`;
  const job = defineJob({ type, input: anything, output: anything, backoff, run: run as never });
  const worker = await db.worker({ jobs: [job], queues: [type] });
  const { id } = await db.oracle.enqueue(job, {}, { queue: type, ...options });
  const ended = await db.oracle.wait(id, { timeoutSeconds: 20 });
  await worker.stop();
  return { id, job: ended, result: (await db.oracle.result(id))?.payload };
}

describe("a step", () => {
  it("is run once: a retry gets its value, which is what the first run got", async () => {
    const calls: string[] = [];
    const seen: unknown[] = [];
    const { id, result } = await runToEnd(async ({ step, job }) => {
      const first = await step("first", () => {
        calls.push("first");
        return { at: new Date(0), nothing: undefined, list: [1] };
      });
      const empty = await step("empty", () => {
        calls.push("empty");
      });
      seen.push(first, empty);
      if (job.attemptNo === 1) throw new Error("once more");
      return { first, own: await step("second", async () => job.attemptNo) };
    });
    expect(calls).toEqual(["first", "empty"]);
    const kept = { at: "1970-01-01T00:00:00.000Z", list: [1] };
    expect(seen).toEqual([kept, null, kept, null]);
    expect(result).toEqual({ first: kept, own: 2 });
    const steps = await db.oracle.steps(id);
    expect(steps.map(({ name, seq, attemptNo }) => [name, seq, attemptNo])).toEqual([
      ["first", 1, 1],
      ["empty", 2, 1],
      ["second", 3, 2],
    ]);
  });

  it("that throws is not remembered", async () => {
    let calls = 0;
    const { result } = await runToEnd(({ step }) =>
      step("flaky", () => {
        calls++;
        if (calls === 1) throw new Error("not yet");
        return calls;
      }),
    );
    expect(result).toBe(2);
  });

  it("has a name that is used once", async () => {
    const { job } = await runToEnd(async ({ step }) => {
      await step("same", () => 1);
      await step("same", () => 2);
    });
    expect(job).toMatchObject({
      state: "FAILED_TERMINAL",
      attemptCount: 1,
      error: { code: "STEP_REPEATED" },
    });
  });

  it.each(["", "x".repeat(201), "nul \0", 7])("has a name that can be kept: %j", async (name) => {
    const { job } = await runToEnd(({ step }) => step(name as string, () => 1));
    expect(job?.state).toBe("FAILED_TERMINAL");
    expect(job?.error?.message).toMatch(/1 to 200 characters/);
  });

  it("whose value cannot be kept ends the job and names the place", async () => {
    const { job } = await runToEnd(({ step }) => step("big", () => ({ n: [1n] })));
    expect(job).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "PAYLOAD_REJECTED", field: "$.n[0]" },
    });
  });

  it("that nobody waits for fails the job, and takes nothing else with it", async () => {
    const { job, id } = await runToEnd(({ step }) => {
      void step("left behind", async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return 1;
      });
      return "done";
    });
    expect(job).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_OPEN" } });
    expect(await db.oracle.steps(id)).toHaveLength(1);
  });

  it("is not written by an attempt that has lost its job", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let thrown: unknown;
    const job = defineJob({
      type: "loser",
      input: anything,
      output: anything,
      run: ({ step }) =>
        step("late", () => held).catch((error: unknown) => {
          thrown = error;
          throw error;
        }),
    });
    const worker = await db.worker({ jobs: [job], queues: ["loser"], pollSeconds: 60 });
    const { id } = await db.oracle.enqueue(job, {}, { queue: "loser" });
    await until("the handler", async () => (await db.oracle.get(id))?.state === "RUNNING");
    await expireLease(db, id);
    expect(await db.oracle.acquire(id, "thief")).toMatchObject({ won: true });
    release();
    await until("the refusal", async () => thrown);
    expect(thrown).toMatchObject({ code: "LEASE_LOST" });
    expect(await db.oracle.steps(id)).toEqual([]);
    await worker.stop();
  });

  it("that was written although its reply was lost is written", async () => {
    const { id, result } = await runToEnd(async ({ step, job }) =>
      step("twice", async () => {
        await db.as(
          "worker",
          "SELECT oracle.remember_steps(ARRAY[$1::uuid], ARRAY[$2::uuid], '{twice}', '{1}', '{7}', ARRAY[$3], ARRAY[NULL::uuid])",
          [job.id, job.attemptId, "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"],
        );
        return 7;
      }),
    );
    expect(result).toBe(7);
    expect(await db.oracle.steps(id)).toHaveLength(1);
  });
});

describe("a large value", () => {
  it.each([
    ["an object", { text: "long ".repeat(300_000), n: 1.5 }],
    ["a text", "long ".repeat(3000)],
    ["a text that is JSON", JSON.stringify({ answer: "long ".repeat(3000) })],
  ])("that is %s is kept as an artifact, and read from there by a retry", async (_kind, large) => {
    let calls = 0;
    const { id, job, result } = await runToEnd(async ({ step, job }) => {
      const value = await step("large", () => {
        calls++;
        return large;
      });
      if (job.attemptNo === 1) throw new Error("once more");
      return isDeepStrictEqual(value, large);
    });
    expect(job).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect(result).toBe(true);
    expect(calls).toBe(1);
    const [step] = await db.oracle.steps(id);
    const [artifact] = await db.oracle.artifacts(id);
    expect(step).toMatchObject({
      value: undefined,
      artifactId: artifact?.artifactId,
      valueHash: artifact?.sha256,
    });
    expect((await verifyJob(db.oracle, id)).checks.every(({ matches }) => matches)).toBe(true);
  });
});

describe("steps of many jobs", () => {
  it("share their commits", async () => {
    const JOBS = 50;
    const STEPS = 10;
    const job = defineJob({
      type: "ten",
      input: anything,
      output: anything,
      async run({ step }) {
        for (let n = 0; n < STEPS; n++) await step(`step-${n}`, () => n);
        return null;
      },
    });
    const commits = async () =>
      (
        await db.sql("SELECT xact_commit::int AS n FROM pg_stat_database WHERE datname = current_database()")
      )[0]?.n as number;
    await db.oracle.enqueueMany(
      job,
      Array.from({ length: JOBS }, () => ({})),
      { queue: "ten" },
    );
    const before = await commits();
    const worker = await db.worker({ jobs: [job], queues: ["ten"], concurrency: JOBS, pollSeconds: 60 });
    await worker.drained();
    await worker.stop();
    const [row] = await db.sql(
      "SELECT count(*)::int AS n FROM oracle.steps s JOIN oracle.jobs USING (job_id) WHERE queue_name = 'ten'",
    );
    expect(row?.n).toBe(JOBS * STEPS);
    await until("the statistics", async () => (await commits()) > before);
    expect((await commits()) - before).toBeLessThan((JOBS * STEPS) / 4);
  });

  it("do not stand in each other's way when one has lost its job", async () => {
    const store = workerDatabase(db);
    await db.oracle.enqueueMany("any", [{}, {}], { queue: "pair" });
    const { leases } = await claimFrom(store, "pair");
    const [kept, lost] = leases.map(({ jobId, attemptId }) => ({ jobId, attemptId }));
    await expireLease(db, lost?.jobId as string);
    await db.oracle.acquire(lost?.jobId as string, "thief");
    const { remember } = await import("../dist/store/steps.js");
    const entry = (lease: unknown) =>
      ({ lease, name: "n", seq: 1, value: "1", valueHash: "h", artifactId: null }) as never;
    expect(await remember(store, [entry(lost), entry(kept)])).toEqual([false, true]);
    expect(await db.sql("SELECT job_id FROM oracle.steps WHERE name = 'n'")).toEqual([
      { job_id: kept?.jobId },
    ]);
    await store.close();
  });
});

describe("a replay from a step", () => {
  it("takes over what comes before it and runs the rest anew", async () => {
    const calls: string[] = [];
    const job = defineJob({
      type: "forked",
      input: anything,
      output: anything,
      async run({ step, effect }) {
        const a = await step("a", () => calls.push("a"));
        const sent = await effect({ key: "mail", kind: "unsafe", request: { to: "x" } }, () => {
          calls.push("mail");
          return "sent";
        });
        const b = await step("b", () => calls.push("b"));
        const c = await step("c", () => calls.push("c"));
        return { a, b, c, sent };
      },
    });
    const worker = await db.worker({ jobs: [job], queues: ["forked"] });
    const old = await db.oracle.enqueue(job, {}, { queue: "forked" });
    await old.result({ timeoutSeconds: 20 });
    expect(calls).toEqual(["a", "mail", "b", "c"]);

    const copy = await db.oracle.replayFrom(old.id, "b");
    expect(await copy.result({ timeoutSeconds: 20 })).toEqual({ a: 1, b: 5, c: 6, sent: "sent" });
    expect(calls).toEqual(["a", "mail", "b", "c", "b", "c"]);
    expect(await db.oracle.get(copy.id)).toMatchObject({ replayOf: old.id, attemptCount: 1 });
    const [mail] = await db.oracle.effects(copy.id);
    expect(mail).toMatchObject({ state: "CONFIRMED", attemptNo: 0, evidence: `as in job ${old.id}` });
    expect(mail?.idempotencyKey).not.toBe((await db.oracle.effects(old.id))[0]?.idempotencyKey);

    await expect(db.oracle.replayFrom(old.id, "d")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await worker.stop();
  });
});
