import { type Attempt, defineJob, type JobContext, type LogLine } from "oracle-worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Lease } from "../dist/core/job.js";
import { Database } from "../dist/store/database.js";
import { reclaim } from "../dist/store/reclaim.js";
import { report } from "../dist/store/report.js";
import { settle } from "../dist/store/settle.js";
import { AttemptReport } from "../dist/worker/attempt-report.js";
import { Reporter } from "../dist/worker/reporter.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { DatabaseProxy } from "./support/proxy.js";

// What a running attempt reports: progress and log lines, from the context down to the tables.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let queues = 0;
const newQueue = () => `reports-${queues++}`;
async function running(count = 1): Promise<Lease[]> {
  const queue = newQueue();
  await db.oracle.enqueueMany(
    "any",
    Array.from({ length: count }, (_, n) => n),
    { queue },
  );
  return (await claimFrom(store, queue, { limit: count })).leases;
}
const messages = (lines: LogLine[]) => lines.map(({ message }) => message);
const line = (seq: number, message = `line ${seq}`) => {
  return { seq, level: "info" as const, message, fields: undefined, madeAt: performance.now() };
};
const done = { kind: "succeeded" as const, resultText: "1", contentHash: "h" };

/** Runs one handler in a worker and gives the job's id once it has ended. */
async function runOnce(run: (context: JobContext<unknown>) => unknown): Promise<string> {
  const queue = newQueue();
  const type = `once-${queue}`;
  const definition = defineJob({ type, input: z.any(), output: z.any(), run });
  const worker = await db.worker({ jobs: [definition], queues: [queue] });
  const job = await db.oracle.enqueue(definition, null, { queue });
  await job.result({ timeoutSeconds: 20 });
  await worker.stop();
  return job.id;
}

describe("a handler's log and progress", () => {
  it("are kept with the attempt, in order, with the database's time", async () => {
    const id = await runOnce(({ log, progress }) => {
      progress(0.25, "first");
      log.info("one", { page: 1 });
      log.warn("two");
      log.error("three", { nested: { deep: [1, null] } });
      progress(0.5, "half", { pages: 7 });
      return null;
    });
    const lines = await db.oracle.logs(id);
    expect(lines).toMatchObject([
      { attemptNo: 1, seq: 1, level: "info", message: "one", fields: { page: 1 } },
      { attemptNo: 1, seq: 2, level: "warn", message: "two", fields: null },
      { attemptNo: 1, seq: 3, level: "error", message: "three", fields: { nested: { deep: [1, null] } } },
    ]);
    const [attempt] = (await db.oracle.attempts(id)) as [Attempt];
    expect(attempt.progress).toEqual({
      fraction: 0.5,
      message: "half",
      details: { pages: 7 },
      at: expect.any(Date),
    });
    for (const at of [attempt.progress?.at as Date, ...lines.map((each) => each.at)]) {
      expect(at.getTime()).toBeGreaterThanOrEqual(attempt.startedAt.getTime());
      expect(at.getTime()).toBeLessThanOrEqual(attempt.endedAt?.getTime() ?? 0);
    }
  });

  it("are all there when the job has ended, however short it was", async () => {
    const queue = newQueue();
    const chatty = defineJob({
      type: "chatty",
      input: z.number(),
      output: z.number(),
      run({ input, log, progress }) {
        log.info(`job ${input}`);
        progress(1);
        if (input % 3 === 0) throw new Error("fails, and has said so");
        return input;
      },
    });
    const worker = await db.worker({ jobs: [chatty], queues: [queue], concurrency: 20 });
    const inputs = Array.from({ length: 300 }, (_, n) => n);
    await db.oracle.enqueueMany(chatty, inputs, { queue, maxAttempts: 1 });
    await worker.drained();
    const [row] = await db.sql(
      `SELECT count(*)::int AS ended, count(*) FILTER (WHERE a.progress ->> 'fraction' = '1')::int AS progressed,
         (SELECT count(*)::int FROM oracle.attempt_logs l JOIN oracle.jobs USING (job_id) WHERE queue_name = $1) AS lines
       FROM oracle.attempts a JOIN oracle.jobs j USING (job_id) WHERE queue_name = $1 AND a.status <> 'RUNNING'`,
      [queue],
    );
    expect(row).toEqual({ ended: 300, progressed: 300, lines: 300 });
  });

  it("are written while it runs", async () => {
    const queue = newQueue();
    let end = () => {};
    const patient = defineJob({
      type: "patient-talker",
      input: z.any(),
      output: z.any(),
      async run({ log, progress }) {
        log.info("begun");
        progress(0.1);
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        return null;
      },
    });
    await db.worker({ jobs: [patient], queues: [queue] });
    const job = await db.oracle.enqueue(patient, null, { queue });
    await until("its line", async () => (await db.oracle.logs(job.id)).length === 1);
    expect((await db.oracle.attempts(job.id))[0]).toMatchObject({
      status: "RUNNING",
      progress: { fraction: 0.1 },
    });
    end();
    await job.result({ timeoutSeconds: 10 });
  });

  it("go to the worker's own log too", async () => {
    const heard: unknown[] = [];
    const queue = newQueue();
    const talker = defineJob({
      type: "talker",
      input: z.any(),
      output: z.any(),
      run({ log }) {
        log.warn("heard twice", { n: 1 });
        return null;
      },
    });
    const keep = (level: string) => (message: string, fields?: object) =>
      heard.push([level, message, fields]);
    await db.worker({
      jobs: [talker],
      queues: [queue],
      log: () => ({ info: keep("info"), warn: keep("warn"), error: keep("error") }),
    });
    const job = await db.oracle.enqueue(talker, null, { queue });
    await job.result({ timeoutSeconds: 10 });
    expect(heard).toEqual([["warn", "heard twice", { n: 1 }]]);
    expect(messages(await db.oracle.logs(job.id))).toEqual(["heard twice"]);
  });

  it("never fail the job, whatever they hold", async () => {
    const id = await runOnce(({ log, progress }) => {
      const ring: Record<string, unknown> = { big: 12n ** 30n, text: "\0\ud800" };
      ring.self = ring;
      log.info("nul \0, half a pair \udfff, line\nbreak", ring);
      log.info("x".repeat(100_000), { y: "y".repeat(100_000) });
      log.info({ not: "a text" } as unknown as string);
      progress(0.5, "\0", ring as never);
      return null;
    });
    const [first, second, third] = await db.oracle.logs(id);
    expect(first).toMatchObject({
      message: "nul \ufffd, half a pair \ufffd, line\nbreak",
      fields: { big: String(12n ** 30n), text: "\ufffd\ufffd", self: "[circular]" },
    });
    expect(Buffer.byteLength(second?.message ?? "")).toBeLessThanOrEqual(8192);
    expect(second?.message).toMatch(/^x{8000,}… \[cut\]$/);
    expect(JSON.stringify(second?.fields).length).toBeLessThanOrEqual(8192);
    expect(third?.message).toBe('{"not":"a text"}');
    expect((await db.oracle.attempts(id))[0]?.progress).toMatchObject({
      message: "\ufffd",
      details: { self: "[circular]" },
    });
  });

  it("a wrong fraction is a warning, one out of range is taken to its end", async () => {
    const id = await runOnce(({ progress }) => {
      progress(0.75, "kept");
      progress(Number.NaN);
      progress("half" as unknown as number);
      progress(undefined as unknown as number);
      return null;
    });
    expect(messages(await db.oracle.logs(id))).toEqual([
      "progress(NaN) is ignored: the fraction must be a number from 0 to 1.",
      'progress("half") is ignored: the fraction must be a number from 0 to 1.',
      "progress(null) is ignored: the fraction must be a number from 0 to 1.",
    ]);
    expect((await db.oracle.attempts(id))[0]?.progress).toMatchObject({ fraction: 0.75, message: "kept" });
    for (const [given, kept] of [
      [7, 1],
      [-1, 0],
      [Number.POSITIVE_INFINITY, 1],
    ] as const) {
      const other = await runOnce(({ progress }) => {
        progress(given);
        return null;
      });
      expect((await db.oracle.attempts(other))[0]?.progress?.fraction).toBe(kept);
    }
  });

  it("end after a thousand lines or a mebibyte, with a line that says so", async () => {
    const many = await runOnce(({ log }) => {
      for (let n = 1; n <= 1500; n++) log.info(`line ${n}`);
      return null;
    });
    const lines = await db.oracle.logs(many, { limit: 10_000 });
    expect(lines).toHaveLength(1001);
    expect(messages(lines).slice(998)).toEqual([
      "line 999",
      "line 1000",
      "The rest is dropped: an attempt may log 1000 lines and 1048576 bytes.",
    ]);
    const large = await runOnce(({ log }) => {
      for (let n = 1; n <= 200; n++) log.info("x".repeat(8192));
      return null;
    });
    const kept = await db.oracle.logs(large);
    expect(kept).toHaveLength(129);
    expect(kept.at(-1)?.message).toMatch(/^The rest is dropped/);
  });
});

describe("the fence", () => {
  it("lets only the attempt that holds the job report, and takes the others' words from the same statement", async () => {
    const [lost, held, ended] = (await running(3)) as [Lease, Lease, Lease];
    await expireLease(db, lost.jobId);
    await reclaim(store, {
      workerId: "other",
      queues: [lost.queue],
      leaseSeconds: 60,
      versions: {},
      limit: 1,
    });
    await settle(store, [{ lease: ended, outcome: done }]);
    const forged = { ...held, attemptId: lost.attemptId };
    const progress = { text: '{"fraction":1}', madeAt: performance.now() };
    const reports = [lost, held, ended, forged].map((lease) => ({ lease, progress, lines: [line(1)] }));
    expect([...(await report(store, reports))]).toEqual([held.attemptId]);
    const rows = await db.sql("SELECT job_id FROM oracle.attempt_logs WHERE job_id = ANY ($1)", [
      [lost.jobId, held.jobId, ended.jobId],
    ]);
    expect(rows).toEqual([{ job_id: held.jobId }]);
    const [first, second] = await db.oracle.attempts(lost.jobId);
    expect([first?.progress, second?.progress]).toEqual([null, null]);
    expect((await db.oracle.attempts(ended.jobId))[0]?.progress).toBeNull();
  });

  it("is closed by a job's end by hand, though its attempt stays open", async () => {
    const [lease] = (await running()) as [Lease];
    await db.as(
      "worker",
      "UPDATE oracle.jobs SET state = 'CANCELLED', completed_at = clock_timestamp(), lease_expires_at = NULL WHERE job_id = $1",
      [lease.jobId],
    );
    expect((await report(store, [{ lease, progress: undefined, lines: [line(1)] }])).size).toBe(0);
  });

  it("keeps a line once though it is written twice", async () => {
    const [lease] = (await running()) as [Lease];
    await report(store, [{ lease, progress: undefined, lines: [line(1), line(2)] }]);
    await report(store, [{ lease, progress: undefined, lines: [line(2, "again"), line(3)] }]);
    expect(messages(await db.oracle.logs(lease.jobId))).toEqual(["line 1", "line 2", "line 3"]);
  });

  it("is closed to a report that comes while the outcome is being written", async () => {
    const [lease] = (await running()) as [Lease];
    let late: Promise<Set<string>> | undefined;
    await store.transaction(async (client) => {
      await client.query({
        text: "SELECT oracle.settle_succeeded(ARRAY[$1::uuid], ARRAY[$2::uuid], '{1}', '{h}', '{t}', '{}')",
        values: [lease.jobId, lease.attemptId],
      });
      late = report(store, [{ lease, progress: undefined, lines: [line(1)] }]);
      await until("the report to wait", async () => {
        const waiting = await db.sql(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%report_attempts%'",
        );
        return waiting.length > 0;
      });
    });
    expect((await late)?.size).toBe(0);
    expect(await db.oracle.logs(lease.jobId)).toEqual([]);
  });

  it("a settlement waits for a report that is being written, and comes after it", async () => {
    const [lease] = (await running()) as [Lease];
    let settled: Promise<unknown> | undefined;
    await store.transaction(async (client) => {
      await client.query({
        text: "SELECT oracle.report_attempts($1)",
        values: [
          JSON.stringify([
            {
              job_id: lease.jobId,
              attempt_id: lease.attemptId,
              attempt_no: lease.attemptNo,
              lines: [{ seq: 1, age: 0, level: "info", message: "in time" }],
            },
          ]),
        ],
      });
      settled = settle(store, [{ lease, outcome: done }]);
      await until("the settlement to wait", async () => {
        const waiting = await db.sql(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%settle_succeeded%'",
        );
        return waiting.length > 0;
      });
      expect((await db.oracle.get(lease.jobId))?.state).toBe("RUNNING");
    });
    await settled;
    expect((await db.oracle.get(lease.jobId))?.state).toBe("SUCCEEDED");
    expect(messages(await db.oracle.logs(lease.jobId))).toEqual(["in time"]);
  });
});

describe("pages of a log", () => {
  it("go on behind a line, over attempts, and give the end", async () => {
    const [lease] = (await running()) as [Lease];
    await report(store, [{ lease, progress: undefined, lines: [line(1), line(2), line(3)] }]);
    await expireLease(db, lease.jobId);
    const { leases } = await reclaim(store, {
      workerId: "other",
      queues: [lease.queue],
      leaseSeconds: 60,
      versions: {},
      limit: 1,
    });
    await report(store, [{ lease: leases[0] as Lease, progress: undefined, lines: [line(1, "second 1")] }]);
    const page = await db.oracle.logs(lease.jobId, { limit: 2 });
    expect(messages(page)).toEqual(["line 1", "line 2"]);
    expect(messages(await db.oracle.logs(lease.jobId, { after: page[1] }))).toEqual(["line 3", "second 1"]);
    expect(messages(await db.oracle.logs(lease.jobId, { last: true, limit: 2 }))).toEqual([
      "line 3",
      "second 1",
    ]);
    await expect(db.oracle.logs(lease.jobId, { limit: 0 })).rejects.toMatchObject({ field: "limit" });
  });
});

describe("the reporter", () => {
  let proxy: DatabaseProxy;
  let through: Database;
  beforeAll(async () => {
    proxy = new DatabaseProxy(db.url);
    await proxy.open();
    through = new Database({ url: proxy.url, role: "worker", connectTimeoutMs: 1000 });
  });
  afterAll(async () => {
    await through.close();
    await proxy.cut();
  });

  it("has nothing to wait for when an attempt has said nothing", async () => {
    const [lease] = (await running()) as [Lease];
    const reporter = new Reporter(store, raise, () => {});
    expect(reporter.finish(lease.attemptId)).toBeUndefined();
    const attempt = new AttemptReport(lease);
    reporter.log(attempt, "info", "one");
    await reporter.finish(lease.attemptId);
    expect(messages(await db.oracle.logs(lease.jobId))).toEqual(["one"]);
    expect(reporter.finish(lease.attemptId)).toBeUndefined();
  });

  it("lets go of an attempt that has lost its job", async () => {
    const [lease] = (await running()) as [Lease];
    await settle(store, [{ lease, outcome: done }]);
    const reporter = new Reporter(store, raise, () => {});
    const attempt = new AttemptReport(lease);
    reporter.log(attempt, "info", "too late");
    await reporter.finish(lease.attemptId);
    reporter.log(attempt, "info", "later still");
    reporter.progress(attempt, '{"fraction":1}');
    expect(reporter.finish(lease.attemptId)).toBeUndefined();
    expect(await db.oracle.logs(lease.jobId)).toEqual([]);
  });

  it("keeps what is said while the database is gone, and writes it once when it is back", async () => {
    const leases = await running(3);
    const events: string[] = [];
    const reporter = new Reporter(
      through,
      () => events.push("trouble"),
      () => events.push("recovered"),
    );
    const attempts = leases.map((lease) => new AttemptReport(lease));
    for (const attempt of attempts) reporter.log(attempt, "info", "before");
    await reporter.finish(leases[0]?.attemptId as string);
    await proxy.cut();
    for (const attempt of attempts) reporter.log(attempt, "info", "during");
    const finished = leases.map((lease) => reporter.finish(lease.attemptId));
    await until("the trouble to be noticed", async () => events.length > 0);
    for (const attempt of attempts) reporter.progress(attempt, '{"fraction":0.5}');
    await proxy.open();
    await Promise.all(finished);
    for (const { jobId } of leases) {
      expect(messages(await db.oracle.logs(jobId))).toEqual(["before", "during"]);
      expect((await db.oracle.attempts(jobId))[0]?.progress?.fraction).toBe(0.5);
    }
    expect(events).toEqual(["trouble", "recovered"]);
  });

  it("does not keep more than its buffer holds, and counts what is missing", async () => {
    const leases = await running(24);
    let troubled = false;
    const reporter = new Reporter(
      through,
      () => {
        troubled = true;
      },
      () => {},
    );
    await proxy.cut();
    const attempts = leases.map((lease) => new AttemptReport(lease));
    for (const attempt of attempts) {
      for (let n = 0; n < 127; n++) reporter.log(attempt, "info", "x".repeat(8192));
    }
    const finished = leases.map((lease) => reporter.finish(lease.attemptId));
    await until("the trouble to be noticed", async () => troubled);
    await proxy.open();
    await Promise.all(finished);
    const rows = await db.sql("SELECT message FROM oracle.attempt_logs WHERE job_id = ANY ($1)", [
      leases.map(({ jobId }) => jobId),
    ]);
    const kept = rows.filter(({ message }) => message.startsWith("x")).length;
    const missing = rows.map(({ message }) =>
      Number(/^(\d+) lines are missing here/.exec(message)?.[1] ?? 0),
    );
    expect(kept * 8192).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(kept * 8192).toBeGreaterThan(15 * 1024 * 1024);
    expect(kept + missing.reduce((sum, n) => sum + n, 0)).toBe(24 * 127);
    // The buffer is empty again.
    const [more] = (await running()) as [Lease];
    const attempt = new AttemptReport(more);
    for (let n = 0; n < 100; n++) reporter.log(attempt, "info", "y".repeat(8192));
    await reporter.finish(more.attemptId);
    expect(await db.oracle.logs(more.jobId)).toHaveLength(100);
  });
});

function raise(error: unknown): void {
  throw error;
}
