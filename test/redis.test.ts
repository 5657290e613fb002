import { setTimeout as sleep } from "node:timers/promises";
import { connect, createWorker, type Oracle } from "oracle-worker";
import { type Announcement, type Dispatcher, redisDispatcher } from "oracle-worker/redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WorkerEvent } from "../dist/core/events.js";
import type { Worker } from "../dist/worker/worker.js";
import { echo, nap } from "./support/jobs.js";
import { expireLease } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";
import { redisInstalled, TestRedis } from "./support/redis.js";

const db = useTestDatabase();
const redis = new TestRedis();
const opened: { worker?: Worker; oracle?: Oracle; dispatcher?: Dispatcher }[] = [];
let queueNumber = 0;
const newQueue = () => `redis-${queueNumber++}`;

beforeAll(async () => {
  if (redisInstalled) await redis.start();
});
afterAll(async () => {
  for (const { worker } of opened) await worker?.stop();
  for (const { oracle, dispatcher } of opened) {
    await oracle?.close();
    await dispatcher?.close();
  }
  await redis.close();
});

/** A connection that announces through the dispatcher and workers that listen to it. */
async function open(dispatcher: Dispatcher = redisDispatcher({ url: redis.url })): Promise<Oracle> {
  const oracle = await connect({ databaseUrl: db.url, dispatcher });
  opened.push({ oracle, dispatcher });
  return oracle;
}

async function startWorker(
  oracle: Oracle,
  queue: string,
  options: { concurrency?: number; leaseSeconds?: number; pollSeconds?: number } = {},
): Promise<{ worker: Worker; events: WorkerEvent[] }> {
  const events: WorkerEvent[] = [];
  const worker = await createWorker(oracle, {
    jobs: [echo, nap],
    queues: [queue],
    concurrency: 20,
    pollSeconds: 0.2,
    ...options,
    onEvent: (event) => events.push(event),
  });
  opened.push({ worker });
  return { worker, events };
}

const attemptsOf = async (id: string) => (await db.oracle.attempts(id)).map(({ status }) => status);
const count = async (queue: string, state: string) => {
  const [row] = await db.sql(
    "SELECT count(*)::int AS n FROM oracle.jobs WHERE queue_name = $1 AND state::text = $2",
    [queue, state],
  );
  return row?.n as number;
};

/** Wraps a dispatcher so that announcements are repeated, dropped and shuffled on their way to Redis. */
function lying(inner: Dispatcher, twist: (jobs: Announcement[]) => Announcement[]): Dispatcher {
  return {
    announce: (jobs) => inner.announce(twist(jobs)),
    listen: (queues, events) => inner.listen(queues, events),
    close: () => inner.close(),
  };
}

function overheard(inner: Dispatcher, heard: string[]): Dispatcher {
  return {
    announce: (jobs) => inner.announce(jobs),
    listen: (queues, events) =>
      inner.listen(queues, {
        ...events,
        onMessage: (jobId) => {
          heard.push(jobId);
          return events.onMessage(jobId);
        },
      }),
    close: () => inner.close(),
  };
}

describe.skipIf(!redisInstalled)("with a real redis-server, which this machine may lack", () => {
  describe("a message", () => {
    it("starts its job, whose id is all it carries", async () => {
      const queue = newQueue();
      const heard: string[] = [];
      const oracle = await open(overheard(redisDispatcher({ url: redis.url }), heard));
      const { worker, events } = await startWorker(oracle, queue);
      await worker.drained(); // its first search of the database is over
      const job = await oracle.enqueue(echo, { n: 7 }, { queue });
      expect(await job.result({ timeoutSeconds: 10 })).toEqual({ n: 7 });
      expect(await attemptsOf(job.id)).toEqual(["SUCCEEDED"]);
      // The one message came, and it did not lose against a search of the database.
      expect(heard).toEqual([job.id]);
      expect(events.filter(({ event }) => event === "acquire.lost")).toEqual([]);
    });

    it("comes from the outbox for jobs submitted by SQL or inside a transaction", async () => {
      const queue = newQueue();
      const oracle = await open();
      const heard: string[] = [];
      const spy = redisDispatcher({ url: redis.url });
      await startWorker(oracle, newQueue());
      const listening = await spy.listen([queue], {
        onMessage: async (jobId) => void heard.push(jobId),
        onLost() {},
        onRestored() {},
      });
      await db.sql("INSERT INTO oracle.queues (queue_name, announced) VALUES ($1, true)", [queue]);
      const [row] = await db.sql("SELECT job_id FROM oracle.enqueue('echo', '{\"n\": 1}', queue => $1)", [
        queue,
      ]);
      await until("the message", async () => heard.includes(row?.job_id));
      await until("an empty outbox", async () => (await db.sql("SELECT FROM oracle.outbox")).length === 0);
      await listening.stop();
      await spy.close();
    });

    it("maps priority and delay", async () => {
      const queue = newQueue();
      const oracle = await open();
      const order: number[] = [];
      const low = await oracle.enqueue(echo, { n: 1 }, { queue, priority: -5 });
      const middle = await oracle.enqueue(echo, { n: 2 }, { queue });
      const high = await oracle.enqueue(echo, { n: 3 }, { queue, priority: 5 });
      const later = await oracle.enqueue(echo, { n: 4 }, { queue, priority: 9, runAfter: 1.5 });
      const ids = [low, middle, high, later].map(({ id }) => id);
      await sleep(200);
      const spy = redisDispatcher({ url: redis.url });
      opened.push({ dispatcher: spy });
      await spy.listen([queue], {
        onMessage: async (jobId) => void order.push(ids.indexOf(jobId) + 1),
        onLost() {},
        onRestored() {},
      });
      await until("all four", async () => order.length === 4);
      expect(order).toEqual([3, 2, 1, 4]);
    });

    it("is left to other workers by one that has no room", async () => {
      const queue = newQueue();
      const oracle = await open();
      await startWorker(oracle, queue, { concurrency: 1 });
      const long = await oracle.enqueue(nap, { ms: 60_000 }, { queue });
      await until("it to run", async () => (await long.state()) === "RUNNING");
      const rest = await oracle.enqueueMany(
        echo,
        Array.from({ length: 20 }, (_, n) => ({ n })),
        { queue },
      );
      await sleep(300);
      expect(await count(queue, "RUNNING")).toBe(1);
      await startWorker(oracle, queue, { concurrency: 5 });
      for (const job of rest) await job.result({ timeoutSeconds: 20 });
      await long.cancel();
    });
  });

  describe("a dispatcher that lies", () => {
    it("duplicates 100 times, reorders and drops: every job runs once", async () => {
      const queue = newQueue();
      const real = redisDispatcher({ url: redis.url });
      let turn = 0;
      const liar = lying(real, (jobs) =>
        jobs
          .filter(() => turn++ % 10 !== 0)
          .flatMap((job) => Array.from({ length: 100 }, (_, n) => ({ ...job, attemptCount: n })))
          .reverse(),
      );
      const oracle = await open(liar);
      for (let n = 0; n < 3; n++) await startWorker(oracle, queue);
      const jobs = await oracle.enqueueMany(
        echo,
        Array.from({ length: 200 }, (_, n) => ({ n })),
        { queue },
      );
      for (const job of jobs) await job.result({ timeoutSeconds: 60 });
      const [row] = await db.sql(
        "SELECT count(*)::int AS n, max(attempt_count) AS most FROM oracle.jobs WHERE queue_name = $1",
        [queue],
      );
      expect(row).toEqual({ n: 200, most: 1 });
    });

    it("names jobs that are finished, cancelled or unknown: the message is acknowledged and the reason logged", async () => {
      const queue = newQueue();
      const oracle = await open();
      const { worker, events } = await startWorker(oracle, queue);
      await worker.drained();
      const done = await oracle.enqueue(echo, { n: 1 }, { queue });
      await done.result({ timeoutSeconds: 10 });
      expect(await worker.executeRun(done.id)).toEqual({ won: false, why: "is already SUCCEEDED" });
      const nobody = "01890000-0000-7000-8000-000000000000";
      expect(await worker.executeRun(nobody)).toEqual({ won: false, why: "does not exist" });
      await expect(worker.executeRun("no id")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
      const lost = events.filter(({ event }) => event === "acquire.lost");
      expect(lost).toMatchObject([{ jobId: done.id }, { jobId: nobody, why: "does not exist" }]);
    });
  });

  describe("two workers given the same id at the same instant", () => {
    it("1,000 times: one winner each", async () => {
      const queue = newQueue();
      const oracle = await connect({ databaseUrl: db.url });
      opened.push({ oracle });
      const first = await startWorker(oracle, "elsewhere-1", { concurrency: 1000 });
      const second = await startWorker(oracle, "elsewhere-2", { concurrency: 1000 });
      const jobs = await oracle.enqueueMany(
        echo,
        Array.from({ length: 1000 }, (_, n) => ({ n })),
        { queue },
      );
      const wins = await Promise.all(
        jobs.map(async ({ id }) => {
          const answers = await Promise.all([first.worker.executeRun(id), second.worker.executeRun(id)]);
          return answers.filter(({ won }) => won).length;
        }),
      );
      expect(wins.filter((won) => won !== 1)).toEqual([]);
      for (const job of jobs) await job.result({ timeoutSeconds: 20 });
      const [row] = await db.sql(
        "SELECT count(*)::int AS n FROM oracle.attempts a JOIN oracle.jobs USING (job_id) WHERE queue_name = $1",
        [queue],
      );
      expect(row?.n).toBe(1000);
    });
  });

  describe("a worker killed after it won the lease", () => {
    it("is followed by another once the lease has run out, and the history shows both", async () => {
      const queue = newQueue();
      const oracle = await open();
      const stolen = await oracle.enqueue(echo, { n: 1 }, { queue });
      expect(await oracle.acquire(stolen.id, "dead-worker")).toMatchObject({ won: true });
      const { worker } = await startWorker(oracle, newQueue());
      expect(await worker.executeRun(stolen.id)).toMatchObject({
        won: false,
        why: "is leased by worker dead-worker",
      });
      await expireLease(db, stolen.id);
      expect(await worker.executeRun(stolen.id)).toEqual({ won: true });
      await stolen.result({ timeoutSeconds: 10 });
      expect(await attemptsOf(stolen.id)).toEqual(["LEASE_EXPIRED", "SUCCEEDED"]);
    });
  });

  describe("Redis", () => {
    it("flushed in the middle of a run only slows things", async () => {
      const queue = newQueue();
      const oracle = await open();
      const jobs = await oracle.enqueueMany(
        nap,
        Array.from({ length: 300 }, () => ({ ms: 5 })),
        { queue },
      );
      await startWorker(oracle, queue, { concurrency: 5 });
      await until("some to be done", async () => (await count(queue, "SUCCEEDED")) > 20);
      await redis.command((client) => client.flushall());
      for (const job of jobs) await job.result({ timeoutSeconds: 30 });
    });

    it("killed: the worker says so, falls back to NOTIFY, and takes messages again when it is back", async () => {
      const queue = newQueue();
      const oracle = await open();
      const { events } = await startWorker(oracle, queue);
      await redis.kill();
      await until("the word of it", async () => events.some(({ event }) => event === "dispatch.lost"));
      const during = await oracle.enqueue(echo, { n: 1 }, { queue });
      expect(await during.result({ timeoutSeconds: 10 })).toEqual({ n: 1 });
      await redis.start();
      await until("its return", async () => events.some(({ event }) => event === "dispatch.restored"));
      const after = await oracle.enqueue(echo, { n: 2 }, { queue });
      expect(await after.result({ timeoutSeconds: 10 })).toEqual({ n: 2 });
    });

    it("that hangs with its connections open does not hold up submissions or jobs", async () => {
      const queue = newQueue();
      const oracle = await open();
      const { events } = await startWorker(oracle, queue);
      redis.freeze();
      const job = await oracle.enqueue(echo, { n: 1 }, { queue });
      expect(await job.result({ timeoutSeconds: 15 })).toEqual({ n: 1 });
      await until("the word of it", async () => events.some(({ event }) => event === "dispatch.lost"));
      redis.thaw();
      await until(
        "its return",
        async () => events.some(({ event }) => event === "dispatch.restored"),
        20_000,
      );
    });

    it("is used by the command line when REDIS_URL names it", async () => {
      const queue = newQueue();
      const env = { DATABASE_URL: db.url, REDIS_URL: redis.url, POLL_INTERVAL: "1h", LOG_LEVEL: "debug" };
      const worker = runCli(["work", "--handlers", handlers, "--queues", queue], env);
      await until("it to serve", async () => worker.output().includes("worker started"));
      const job = await db.oracle.enqueue("quick", { n: 5 }, { queue });
      expect(await job.result({ timeoutSeconds: 15 })).toEqual({ n: 5 });
      worker.process.kill("SIGTERM");
      expect(await worker.ended).toBe(0);
    });
  });
});
