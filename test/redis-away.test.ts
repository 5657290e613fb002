import { describe, expect, it } from "vitest";
import { runToEnd } from "./support/cli.js";
import { overheard, useRedis } from "./support/dispatch.js";
import { echo, nap } from "./support/jobs.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";
import { freePort, redisInstalled } from "./support/redis.js";

// What a Redis that forgets, hangs or dies does to jobs: they start later. And who says so.

const db = useTestDatabase();
const tests = useRedis(db);
const { redis } = tests;

describe.skipIf(!redisInstalled)("Redis", { timeout: 180_000 }, () => {
  it("flushed in the middle of a run only slows things", async () => {
    const queue = tests.newQueue();
    const oracle = await tests.open();
    const jobs = await oracle.enqueueMany(
      nap,
      Array.from({ length: 300 }, () => ({ ms: 5 })),
      { queue },
    );
    await tests.worker(oracle, queue, { concurrency: 5 });
    await until("some to be done", async () => (await tests.count(queue, "SUCCEEDED")) > 20);
    await redis.command((client) => client.flushall());
    for (const job of jobs) await job.result({ timeoutSeconds: 30 });
    expect(await tests.attempts(queue)).toBe(300);
  });

  it("killed: the worker says so, falls back to NOTIFY, and takes messages again when it is back", async () => {
    const queue = tests.newQueue();
    const heard: string[] = [];
    const oracle = await tests.open(overheard(tests.dispatcher(), heard));
    // Polling comes too late to help.
    const { events } = await tests.worker(oracle, queue, { pollSeconds: 3600 });
    await redis.kill();
    await until("the word of it", async () => events.some(({ event }) => event === "dispatch.lost"));
    const during = await oracle.enqueue(echo, { n: 1 }, { queue });
    expect(await during.result({ timeoutSeconds: 10 })).toEqual({ n: 1 });
    await redis.start();
    await until("its return", async () => events.some(({ event }) => event === "dispatch.restored"));
    const after = await oracle.enqueue(echo, { n: 2 }, { queue });
    expect(await after.result({ timeoutSeconds: 10 })).toEqual({ n: 2 });
    expect(heard).toContain(after.id);
  });

  it("that hangs with its connections open does not hold up submissions or jobs", async () => {
    const queue = tests.newQueue();
    const oracle = await tests.open();
    const { events } = await tests.worker(oracle, queue);
    redis.freeze();
    const job = await oracle.enqueue(echo, { n: 1 }, { queue });
    expect(await job.result({ timeoutSeconds: 15 })).toEqual({ n: 1 });
    await until("the word of it", async () => events.some(({ event }) => event === "dispatch.lost"));
    redis.thaw();
    await until("its return", async () => events.some(({ event }) => event === "dispatch.restored"), 20_000);
  });

  it("that takes no message lets the database's searches start the job", async () => {
    const queue = tests.newQueue();
    const oracle = await tests.open();
    await tests.worker(oracle, queue);
    // It answers, and refuses every write.
    await redis.command((client) => client.config("SET", "min-replicas-to-write", "1"));
    try {
      const job = await oracle.enqueue(echo, { n: 1 }, { queue });
      expect(await job.result({ timeoutSeconds: 20 })).toEqual({ n: 1 });
    } finally {
      await redis.command((client) => client.config("SET", "min-replicas-to-write", "0"));
    }
  });

  it("is used by the command line when REDIS_URL names it", async () => {
    const queue = tests.newQueue();
    const env = { DATABASE_URL: db.url, REDIS_URL: redis.url, POLL_INTERVAL: "1h", LOG_LEVEL: "debug" };
    const worker = runCli(["work", "--handlers", handlers, "--queues", queue], env);
    await until("it to serve", async () => worker.output().includes("worker started"), 60_000);
    const job = await db.oracle.enqueue("quick", { n: 5 }, { queue });
    expect(await job.result({ timeoutSeconds: 15 })).toEqual({ n: 5 });
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  it("that is away shows on /readyz, in the log and in doctor, and so does its return", async () => {
    const queue = tests.newQueue();
    const port = await freePort();
    const env = { DATABASE_URL: db.url, REDIS_URL: redis.url, HEALTH_PORT: String(port) };
    const readiness = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return `${response?.status} ${await response?.text()}`;
    };
    const doctor = async (...flags: string[]) => {
      const { code, json } = await runToEnd(["doctor", ...flags], { env });
      const findings = json.findings as { check: string; level: string; message: string }[];
      return { code, redis: findings.filter(({ check }) => check === "Redis") };
    };

    const worker = runCli(["work", "--handlers", handlers, "--queues", queue], env);
    await until("readiness", async () => (await readiness()) === "200 ok\n", 60_000);
    expect(await doctor()).toEqual({
      code: 0,
      redis: [{ check: "Redis", level: "ok", message: "answers", fix: null }],
    });

    await redis.kill();
    await until("the word of it", async () => (await readiness()).includes("Redis is away"));
    // It works on: whoever sends it work by this answer shall go on.
    expect(await readiness()).toMatch(
      /^200 ok\nRedis is away, NOTIFY and polling take over: .*(closed|ECONNREFUSED)/,
    );
    expect(worker.output()).toContain("Redis is away");
    const job = await db.oracle.enqueue("quick", { n: 5 }, { queue });
    expect(await job.result({ timeoutSeconds: 15 })).toEqual({ n: 5 });
    expect(await doctor()).toMatchObject({
      code: 0,
      redis: [{ level: "warn", message: expect.stringContaining("ECONNREFUSED") }],
    });
    expect(await doctor("--strict")).toMatchObject({ code: 1 });

    await redis.start();
    await until("its return", async () => (await readiness()) === "200 ok\n", 60_000);
    expect(worker.output()).toContain("Redis is back");
    expect(await doctor()).toMatchObject({ redis: [{ level: "ok" }] });
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});
