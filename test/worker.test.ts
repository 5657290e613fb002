import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "oracle-worker";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { WorkerEvent } from "../dist/core/events.js";
import type { Lease } from "../dist/core/job.js";
import { promote } from "../dist/store/promote.js";
import { settle } from "../dist/store/settle.js";
import { echo, flaky, nap } from "./support/jobs.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
let queueNumber = 0;
const newQueue = () => `worker-${queueNumber++}`;
const attemptsOf = async (id: string) =>
  (await db.oracle.attempts(id)).map(({ status, cause }) => (cause ? `${status} ${cause}` : status));

describe("running", () => {
  it("drains a queue, gives every job one result, and leaves no hint behind", async () => {
    const queue = newQueue();
    const handles = await db.oracle.enqueueMany(
      echo,
      Array.from({ length: 3000 }, (_, n) => ({ n })),
      { queue },
    );
    const worker = await db.worker({ jobs: [echo], queues: [queue], concurrency: 50 });
    await worker.drained();
    expect(await handles[1234]?.result()).toEqual({ n: 1234 });
    const [row] = await db.sql(
      `SELECT count(*)::int AS jobs, count(r.job_id)::int AS results, count(a.job_id)::int AS attempts
       FROM oracle.jobs j LEFT JOIN oracle.results r USING (job_id) LEFT JOIN oracle.attempts a USING (job_id)
       WHERE j.queue_name = $1 AND j.state = 'SUCCEEDED' AND a.status = 'SUCCEEDED'`,
      [queue],
    );
    expect(row).toEqual({ jobs: 3000, results: 3000, attempts: 3000 });
    await worker.stop();
    expect(await db.sql("SELECT 1 FROM oracle.workers WHERE queues = ARRAY[$1]", [queue])).toEqual([]);
  });

  it("fills more slots than one claim brings, without waiting for a poll", async () => {
    const queue = newQueue();
    let running = 0;
    let letGo = () => {};
    const end = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const patient = defineJob({
      type: "patient",
      input: z.number(),
      output: z.null(),
      async run() {
        running++;
        await end;
        return null;
      },
    });
    await db.oracle.enqueueMany(
      patient,
      Array.from({ length: 4000 }, (_, n) => n),
      { queue },
    );
    const options = { jobs: [patient], queues: [queue], concurrency: 4000, pollSeconds: 60 };
    const worker = await db.worker(options);
    await until("all to run", async () => running === 4000);
    letGo();
    await worker.drained();
  });

  it("lets the event loop turn while short jobs follow each other", async () => {
    const queue = newQueue();
    let sinceTurn = 0;
    let most = 0;
    const busy = defineJob({
      type: "busy",
      input: z.number(),
      output: z.null(),
      run() {
        for (const until = performance.now() + 1; performance.now() < until; );
        most = Math.max(most, ++sinceTurn);
        return null;
      },
    });
    await db.oracle.enqueueMany(
      busy,
      Array.from({ length: 1500 }, (_, n) => n),
      { queue },
    );
    const turns = setInterval(() => {
      sinceTurn = 0;
    }, 1);
    const worker = await db.worker({ jobs: [busy], queues: [queue], concurrency: 10 });
    await worker.drained();
    clearInterval(turns);
    expect(most).toBeLessThan(100);
  });

  it("runs the higher priority first, then the older, then the lower id", async () => {
    const queue = newQueue();
    const order: number[] = [];
    const recorder = defineJob({
      type: "recorder",
      input: z.object({ n: z.number() }),
      output: z.null(),
      run({ input }) {
        order.push(input.n);
        return null;
      },
    });
    await db.oracle.enqueue(recorder, { n: 3 }, { queue });
    await db.oracle.enqueue(recorder, { n: 4 }, { queue });
    await db.oracle.enqueue(recorder, { n: 5 }, { queue, priority: -1 });
    await db.oracle.enqueue(recorder, { n: 1 }, { queue, priority: 10 });
    await db.oracle.enqueue(recorder, { n: 2 }, { queue, priority: 10 });
    const worker = await db.worker({ jobs: [recorder], queues: [queue], concurrency: 1 });
    await worker.drained();
    expect(order).toEqual([1, 2, 3, 4, 5]);
  });

  it("with ageing, waiting outweighs priority", async () => {
    const queue = newQueue();
    await db.oracle.setQueueAgeing(queue, 60);
    const old = await db.oracle.enqueue("x", 1, { queue, runAfter: new Date(Date.now() - 3_600_000) });
    const young = await db.oracle.enqueue("x", 2, { queue, priority: 10 });
    const order = async () =>
      (
        await db.sql("SELECT job_id FROM oracle.ready_jobs WHERE queue_name = $1 ORDER BY rank, ready_at", [
          queue,
        ])
      ).map((row) => row.job_id);
    expect(await order()).toEqual([old.id, young.id]);
    await db.oracle.setQueueAgeing(queue, null);
    expect(await order()).toEqual([young.id, old.id]);
  });

  it("starts a delayed job when its time has come, not before", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [echo], queues: [queue] });
    const startedAt = performance.now();
    const job = await db.oracle.enqueue(echo, { n: 1 }, { queue, runAfter: 1 });
    expect(await job.result({ timeoutSeconds: 10 })).toEqual({ n: 1 });
    expect(performance.now() - startedAt).toBeGreaterThan(1000);
  });

  it("finds a job that nobody announced, by polling", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [echo], queues: [queue] });
    // By then it has looked and found nothing: only the next poll can find the job. (Not by `drained`, which polls.)
    await sleep(500);
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("SELECT set_config('oracle.notify', 'off', false)");
    const job = await db.oracle.enqueue(echo, { n: 1 }, { queue, client });
    await client.end();
    expect(await job.result({ timeoutSeconds: 5 })).toEqual({ n: 1 });
  });

  it("leaves a paused queue alone and goes on when it is resumed", async () => {
    const queue = newQueue();
    await db.oracle.pauseQueue(queue);
    const job = await db.oracle.enqueue(echo, { n: 1 }, { queue });
    await db.worker({ jobs: [echo], queues: [queue], pollSeconds: 30 });
    await sleep(300);
    expect(await job.state()).toBe("PENDING");
    await db.oracle.resumeQueue(queue);
    expect(await job.result({ timeoutSeconds: 5 })).toEqual({ n: 1 });
  });

  it("serves every tenant while one of them floods the queue", async () => {
    const queue = newQueue();
    await db.oracle.enqueueMany(
      nap,
      Array.from({ length: 200 }, () => ({ ms: 5 })),
      { queue, tenant: "flood" },
    );
    const small = await db.oracle.enqueue(nap, { ms: 1 }, { queue, tenant: "small" });
    const worker = await db.worker({ jobs: [nap], queues: [queue], concurrency: 4 });
    await worker.drained();
    const [row] = await db.sql(
      `SELECT count(*)::int AS n FROM oracle.jobs flood JOIN oracle.jobs small ON small.job_id = $1
       WHERE flood.queue_name = $2 AND flood.tenant_id = 'flood' AND flood.started_at < small.started_at`,
      [small.id, queue],
    );
    expect(row?.n, "of the flood started before it").toBeLessThan(100);
  });
});

describe("failing", () => {
  it.each([
    ["plain", 2, "SUCCEEDED", ["FAILED HANDLER_ERROR", "FAILED HANDLER_ERROR", "SUCCEEDED"]],
    ["retry", 1, "SUCCEEDED", ["FAILED HANDLER_ERROR", "SUCCEEDED"]],
    [
      "string",
      9,
      "FAILED_TERMINAL",
      ["FAILED HANDLER_ERROR", "FAILED HANDLER_ERROR", "FAILED HANDLER_ERROR"],
    ],
    ["terminal", 9, "FAILED_TERMINAL", ["FAILED HANDLER_ERROR"]],
  ] as const)("a %s error", async (how, failures, state, attempts) => {
    const queue = newQueue();
    await db.worker({ jobs: [flaky], queues: [queue] });
    const job = await db.oracle.enqueue(flaky, { failures, how }, { queue });
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 10 }))?.state).toBe(state);
    expect(await attemptsOf(job.id)).toEqual(attempts);
  });

  it("bad input and bad output end the job at once", async () => {
    const queue = newQueue();
    const liar = defineJob({
      type: "liar",
      input: z.object({ how: z.string() }),
      output: z.object({ ok: z.boolean() }),
      run: ({ input }) =>
        input.how === "shape" ? ({ ok: "yes" } as never) : ({ ok: true, bad: "\0" } as never),
    });
    await db.worker({ jobs: [liar], queues: [queue] });
    const input = await db.oracle.enqueue("liar", { wrong: 1 }, { queue });
    expect(await db.oracle.wait(input.id)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "INPUT_INVALID", field: "$.how" },
    });
    const output = await db.oracle.enqueue("liar", { how: "shape" }, { queue });
    expect(await db.oracle.wait(output.id)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "OUTPUT_INVALID", field: "$.ok" },
    });
  });

  it("an unknown type is terminal when no live worker serves it, and left alone when one does", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [echo], queues: [queue] });
    const nobody = await db.oracle.enqueue("nobody_serves_this", {}, { queue });
    expect(await db.oracle.wait(nobody.id)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "UNSUPPORTED_JOB_TYPE" },
    });
    await db.worker({ jobs: [nap], queues: [newQueue()] });
    const elsewhere = await db.oracle.enqueue(nap, { ms: 1 }, { queue });
    await until("the release", async () =>
      (await attemptsOf(elsewhere.id)).includes("RELEASED NO_HANDLER_HERE"),
    );
    expect(await db.oracle.get(elsewhere.id)).toMatchObject({ state: "PENDING", interruptions: 1 });
  });

  it("a timeout aborts the signal and is retried, a deadline is final", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [nap], queues: [queue] });
    const slow = await db.oracle.enqueue(nap, { ms: 60_000 }, { queue, timeoutSeconds: 1, maxAttempts: 1 });
    expect(await db.oracle.wait(slow.id, { timeoutSeconds: 10 })).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "TIMEOUT" },
    });
    const late = await db.oracle.enqueue(
      nap,
      { ms: 60_000 },
      { queue, deadline: new Date(Date.now() + 800) },
    );
    expect(await db.oracle.wait(late.id, { timeoutSeconds: 10 })).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "DEADLINE_EXCEEDED" },
    });
    expect(await attemptsOf(late.id)).toEqual(["FAILED DEADLINE_EXCEEDED"]);
  });

  it("a job that waits past its deadline fails without an attempt", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [nap], queues: [queue] });
    const job = await db.oracle.enqueue(
      nap,
      { ms: 1 },
      { queue, runAfter: 600, deadline: new Date(Date.now() + 300) },
    );
    expect(await db.oracle.wait(job.id, { timeoutSeconds: 10 })).toMatchObject({
      state: "FAILED_TERMINAL",
      attemptCount: 0,
      error: { code: "DEADLINE_EXCEEDED" },
    });
  });

  it("a job that is handed back after its deadline's timer has fired still fails", async () => {
    const queue = newQueue();
    const job = await db.oracle.enqueue(nap, { ms: 1 }, { queue, deadline: 1 });
    const store = workerDatabase(db);
    const { leases } = await claimFrom(store, queue);
    await sleep(1100);
    await promote(store);
    await settle(store, [
      { lease: leases[0] as Lease, outcome: { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 } },
    ]);
    await store.close();
    await db.worker({ jobs: [nap], queues: [queue] });
    expect(await db.oracle.wait(job.id, { timeoutSeconds: 10 })).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "DEADLINE_EXCEEDED" },
    });
  });

  it("a snooze costs no attempt", async () => {
    const queue = newQueue();
    const sleepy = defineJob({
      type: "sleepy",
      input: z.object({}),
      output: z.object({ attempt: z.number() }),
      run: ({ job, snooze }) => (job.attemptNo < 5 ? snooze(0.01) : { attempt: job.attemptNo }),
    });
    await db.worker({ jobs: [sleepy], queues: [queue] });
    const job = await db.oracle.enqueue(sleepy, {}, { queue, maxAttempts: 1 });
    expect(await job.result({ timeoutSeconds: 10 })).toEqual({ attempt: 5 });
  });
});

describe("cancelling", () => {
  it("reaches a running handler and ends in CANCELLED", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [nap], queues: [queue], pollSeconds: 30 });
    const job = await db.oracle.enqueue(nap, { ms: 60_000 }, { queue });
    await until("it to run", async () => (await job.state()) === "RUNNING");
    await job.cancel();
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 3 }))?.state).toBe("CANCELLED");
    expect(await attemptsOf(job.id)).toEqual(["CANCELLED CANCELLED"]);
    await expect(job.result()).rejects.toMatchObject({ code: "JOB_CANCELLED" });
  });

  it("racing a completion leaves exactly one terminal state", async () => {
    const queue = newQueue();
    await db.worker({ jobs: [nap], queues: [queue], concurrency: 20 });
    const jobs = await db.oracle.enqueueMany(
      nap,
      Array.from({ length: 60 }, (_, n) => ({ ms: n % 20 })),
      { queue },
    );
    await Promise.all(
      jobs.map(async (job) => {
        await sleep(Math.random() * 40);
        await job.cancel().catch((error) => expect(error.code).toBe("JOB_PRECONDITION"));
      }),
    );
    for (const job of jobs) {
      const state = (await db.oracle.wait(job.id, { timeoutSeconds: 10 }))?.state;
      expect((await db.oracle.result(job.id)) !== undefined).toBe(state === "SUCCEEDED");
      expect(["SUCCEEDED", "CANCELLED"]).toContain(state);
    }
  });
});

describe("stopping", () => {
  it("finishes what runs and hands back what does not end in time, at no cost", async () => {
    const queue = newQueue();
    const events: WorkerEvent[] = [];
    const worker = await db.worker({
      jobs: [nap],
      queues: [queue],
      concurrency: 2,
      shutdownGraceSeconds: 0.5,
      onEvent: (event) => events.push(event),
    });
    const quick = await db.oracle.enqueue(nap, { ms: 300 }, { queue, priority: 1 });
    const long = await db.oracle.enqueue(nap, { ms: 60_000 }, { queue });
    await until(
      "both to run",
      async () => (await long.state()) === "RUNNING" && (await quick.state()) === "RUNNING",
    );
    await worker.stop();
    expect(await quick.state()).toBe("SUCCEEDED");
    expect(await db.oracle.get(long.id)).toMatchObject({ state: "PENDING", interruptions: 1 });
    expect(await attemptsOf(long.id)).toEqual(["RELEASED SHUTDOWN"]);
    expect(events.at(-1)).toMatchObject({ event: "worker.stopped", abandoned: 0 });
  });
});

describe("options that make no sense", () => {
  it.each([
    ["jobs", { jobs: 5 }],
    ["jobs", { jobs: [{ type: "homemade" }] }],
    ["queue", { queues: [null] }],
    ["queues", { queues: "docs" }],
    ["tenant", { tenant: "" }],
    ["concurrency", { concurrency: 0 }],
    ["concurrency", { concurrency: 1.5 }],
    ["concurrency", { concurrency: Number.NaN }],
    ["leaseSeconds", { leaseSeconds: "abc" }],
    ["pollSeconds", { pollSeconds: -1 }],
    ["shutdownGraceSeconds", { shutdownGraceSeconds: Number.POSITIVE_INFINITY }],
    ["onEvent", { onEvent: 5 }],
  ])("are refused: %s of %j", async (field, options) => {
    const worker = db.worker({ jobs: [echo], ...(options as object) });
    await expect(worker).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field });
  });

  it.each(["a", Number.NaN, -1, null])("are refused: a wait of %j seconds", async (timeoutSeconds) => {
    const wait = db.oracle.wait("01a1e0ed-0000-7000-8000-000000000000", { timeoutSeconds } as object);
    await expect(wait).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "timeoutSeconds" });
  });
});

describe("stopping in the middle of a heartbeat", () => {
  it("ends, and leaves no row of the worker behind", async () => {
    const queue = newQueue();
    const worker = await db.worker({ jobs: [echo], queues: [queue], leaseSeconds: 1 });
    const locked = db.sql("BEGIN; LOCK TABLE oracle.workers IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT");
    await until("the heartbeat to wait for the lock", async () => {
      const waiting = await db.sql(
        "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'oracle-worker lease' AND datname = current_database()",
      );
      return waiting.length > 0;
    });
    await worker.stop();
    await locked;
    expect(await db.sql("SELECT FROM oracle.workers WHERE queues = ARRAY[$1]", [queue])).toEqual([]);
  });
});

describe("a renewal thread that dies", () => {
  it("stops the handlers, and the worker takes no more jobs and says so", async () => {
    const queue = newQueue();
    const events: WorkerEvent[] = [];
    let reason: unknown;
    const waiter = defineJob({
      type: "waiter",
      input: z.null(),
      output: z.null(),
      run: ({ signal }) =>
        new Promise<null>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            reason = signal.reason;
            reject(signal.reason);
          });
        }),
    });
    const worker = await db.worker({
      jobs: [waiter],
      queues: [queue],
      onEvent: (event) => events.push(event),
    });
    const job = await db.oracle.enqueue(waiter, null, { queue });
    await until("it to run", async () => events.some(({ event }) => event === "job.started"));
    const { keeper } = worker as unknown as { keeper: { thread: { terminate(): Promise<number> } } };
    await keeper.thread.terminate();
    await until("the word of it", async () => events.some(({ event }) => event === "worker.broken"));
    await until("the handler's end", async () => reason !== undefined);
    expect(reason).toMatchObject({ code: "LEASE_LOST", jobId: job.id });
    await expect(worker.drained()).rejects.toMatchObject({ code: "WORKER_BROKEN" });
  });
});

describe("trouble", () => {
  it("a lease taken over aborts the handler, and its late word is kept as evidence", async () => {
    const queue = newQueue();
    const events: WorkerEvent[] = [];
    await db.worker({
      jobs: [nap],
      queues: [queue],
      leaseSeconds: 1,
      onEvent: (event) => events.push(event),
    });
    const job = await db.oracle.enqueue(nap, { ms: 60_000 }, { queue });
    await until("it to run", async () => (await job.state()) === "RUNNING");
    // In one transaction: between its parts the worker would renew the lease, or take the job over itself.
    await db.sql(`BEGIN;
      UPDATE oracle.jobs SET lease_expires_at = clock_timestamp() - interval '1 ms' WHERE job_id = '${job.id}';
      UPDATE oracle.claims SET expires_at = clock_timestamp() - interval '1 ms' WHERE '${job.id}' = ANY (job_ids);
      SELECT FROM oracle.reclaim_jobs(ARRAY['${queue}'], NULL, 'thief', 1, 60, gen_random_uuid(), '{}');
      COMMIT`);
    await until("the loss", async () => events.some(({ event }) => event === "lease.lost"));
    await until("the evidence", async () => (await attemptsOf(job.id))[0] === "SUPERSEDED LEASE_EXPIRED");
  });

  it("a database connection lost while settling costs nothing, and the worker still drains", async () => {
    const queue = newQueue();
    const events: WorkerEvent[] = [];
    const worker = await db.worker({ jobs: [nap], queues: [queue], onEvent: (event) => events.push(event) });
    const cut = db.sql(`BEGIN; LOCK TABLE oracle.results IN EXCLUSIVE MODE;
      DO $$ BEGIN LOOP
        PERFORM pg_stat_clear_snapshot();
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%settle_succeeded%' AND datname = current_database();
        EXIT WHEN FOUND;
        PERFORM pg_sleep(0.01);
      END LOOP; END $$; COMMIT`);
    await until("the lock", async () => {
      const held = await db.sql(
        "SELECT FROM pg_locks WHERE relation = 'oracle.results'::regclass AND granted",
      );
      return held.length > 0;
    });
    const jobs = await db.oracle.enqueueMany(nap, [{ ms: 1 }, { ms: 20 }], { queue });
    await cut;
    await worker.drained();
    for (const job of jobs) expect(await attemptsOf(job.id)).toEqual(["SUCCEEDED"]);
    expect(events.map(({ event }) => event)).toContain("database.trouble");
    expect(events.map(({ event }) => event)).toContain("database.recovered");
  });
});

describe("a blocked event loop", () => {
  it("keeps its lease for three leases' length", async () => {
    const queue = newQueue();
    const blocker = defineJob({
      type: "blocker",
      input: z.object({ ms: z.number() }),
      output: z.object({ attempt: z.number() }),
      run({ input, job }) {
        const endsAt = Date.now() + input.ms;
        while (Date.now() < endsAt);
        return { attempt: job.attemptNo };
      },
    });
    const job = await db.oracle.enqueue(blocker, { ms: 3200 }, { queue });
    await db.worker({ jobs: [blocker], queues: [queue], leaseSeconds: 1 });
    expect(await job.result({ timeoutSeconds: 20 })).toEqual({ attempt: 1 });
    expect(await attemptsOf(job.id)).toEqual(["SUCCEEDED"]);
  });
});
