import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "oracle-worker";
import { afterAll, describe, expect, it } from "vitest";
import { lying, overheard, useRedis, type WorkerUnderTest } from "./support/dispatch.js";
import { echo, nap } from "./support/jobs.js";
import { expireLease } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";
import { redisInstalled } from "./support/redis.js";

const db = useTestDatabase();
const tests = useRedis(db);

const attemptsOf = async (id: string) => (await db.oracle.attempts(id)).map(({ status }) => status);
const deaf = { onLost() {}, onRestored() {} };
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));

describe.skipIf(!redisInstalled)("with a real redis-server, which this machine may lack", () => {
  describe("a message", () => {
    it("starts its job, whose id is all it carries", async () => {
      const queue = tests.newQueue();
      const heard: string[] = [];
      const oracle = await tests.open(overheard(tests.dispatcher(), heard));
      const { worker, events } = await tests.worker(oracle, queue);
      await worker.drained(); // its first search of the database is over
      const job = await oracle.enqueue(echo, { n: 7 }, { queue });
      expect(await job.result({ timeoutSeconds: 10 })).toEqual({ n: 7 });
      expect(await attemptsOf(job.id)).toEqual(["SUCCEEDED"]);
      // The one message came, and it did not lose against a search of the database.
      expect(heard).toEqual([job.id]);
      expect(events.filter(({ event }) => event === "acquire.lost")).toEqual([]);
    });

    it("comes from the outbox for jobs submitted by SQL or inside a transaction", async () => {
      const queue = tests.newQueue();
      const oracle = await tests.open();
      const heard: string[] = [];
      await tests.worker(oracle, tests.newQueue());
      const listening = await tests.dispatcher().listen([queue], {
        ...deaf,
        onMessage: async (jobId) => void heard.push(jobId),
      });
      await db.sql("INSERT INTO oracle.queues (queue_name, announced) VALUES ($1, true)", [queue]);
      const [row] = await db.sql("SELECT job_id FROM oracle.enqueue('echo', '{\"n\": 1}', queue => $1)", [
        queue,
      ]);
      await until("the message", async () => heard.includes(row?.job_id));
      await until("an empty outbox", async () => (await db.sql("SELECT FROM oracle.outbox")).length === 0);
      await listening.stop();
    });

    it("maps priority and delay", async () => {
      const queue = tests.newQueue();
      const oracle = await tests.open();
      const order: number[] = [];
      const low = await oracle.enqueue(echo, { n: 1 }, { queue, priority: -5 });
      const middle = await oracle.enqueue(echo, { n: 2 }, { queue });
      const high = await oracle.enqueue(echo, { n: 3 }, { queue, priority: 5 });
      const later = await oracle.enqueue(echo, { n: 4 }, { queue, priority: 9, runAfter: 1.5 });
      const ids = [low, middle, high, later].map(({ id }) => id);
      await sleep(200);
      await tests.dispatcher().listen([queue], {
        ...deaf,
        onMessage: async (jobId) => void order.push(ids.indexOf(jobId) + 1),
      });
      await until("all four", async () => order.length === 4);
      expect(order).toEqual([3, 2, 1, 4]);
    });

    it("is left to other workers by one that has no room", async () => {
      const queue = tests.newQueue();
      const oracle = await tests.open();
      await tests.worker(oracle, queue, { concurrency: 1 });
      const long = await oracle.enqueue(nap, { ms: 60_000 }, { queue });
      await until("it to run", async () => (await long.state()) === "RUNNING");
      const rest = await oracle.enqueueMany(echo, numbers(20), { queue });
      await sleep(300);
      expect(await tests.count(queue, "RUNNING")).toBe(1);
      await tests.worker(oracle, queue, { concurrency: 5 });
      for (const job of rest) await job.result({ timeoutSeconds: 20 });
      await long.cancel();
    });
  });

  describe("a dispatcher that lies", () => {
    it("duplicates 100 times, reorders and drops: every job runs once", async () => {
      const queue = tests.newQueue();
      let turn = 0;
      const liar = lying(tests.dispatcher(), (jobs) =>
        jobs
          .filter(() => turn++ % 10 !== 0)
          .flatMap((job) => Array.from({ length: 100 }, (_, n) => ({ ...job, attemptCount: n })))
          .reverse(),
      );
      const oracle = await tests.open(liar);
      for (let n = 0; n < 3; n++) await tests.worker(oracle, queue);
      const jobs = await oracle.enqueueMany(echo, numbers(200), { queue });
      for (const job of jobs) await job.result({ timeoutSeconds: 60 });
      expect([await tests.count(queue, "SUCCEEDED"), await tests.attempts(queue)]).toEqual([200, 200]);
    });

    it("names jobs that are finished, cancelled or unknown: the message is acknowledged and the reason logged", async () => {
      const queue = tests.newQueue();
      const oracle = await tests.open();
      const { worker, events } = await tests.worker(oracle, queue);
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
      const queue = tests.newQueue();
      const oracle = await connect({ databaseUrl: db.url });
      afterAll(() => oracle.close());
      const first = await tests.worker(oracle, "elsewhere-1", { concurrency: 1000 });
      const second = await tests.worker(oracle, "elsewhere-2", { concurrency: 1000 });
      const jobs = await oracle.enqueueMany(echo, numbers(1000), { queue });
      const wins = await Promise.all(
        jobs.map(async ({ id }) => {
          const answers = await Promise.all([first.worker.executeRun(id), second.worker.executeRun(id)]);
          return answers.filter(({ won }) => won).length;
        }),
      );
      expect(wins.filter((won) => won !== 1)).toEqual([]);
      for (const job of jobs) await job.result({ timeoutSeconds: 20 });
      expect(await tests.attempts(queue)).toBe(1000);
    });

    it("by messages, 1,000 times: the loser says why and acknowledges", { timeout: 180_000 }, async () => {
      const queue = tests.newQueue();
      // Each worker has messages of its own, and every id goes to both.
      const [left, right] = [tests.dispatcher("left"), tests.dispatcher("right")];
      const teams: WorkerUnderTest[] = [];
      for (const dispatcher of [left, right]) {
        teams.push(await tests.worker(await tests.open(dispatcher), queue, { concurrency: 1000 }));
      }
      for (const { worker } of teams) await worker.drained(); // no search of the database gets in between
      const both = await tests.open({
        announce: async (jobs) => void (await Promise.all([left.announce(jobs), right.announce(jobs)])),
        listen: (queues, events) => left.listen(queues, events),
        close: async () => {},
      });
      const jobs = await both.enqueueMany(echo, numbers(1000), { queue });
      for (const job of jobs) await job.result({ timeoutSeconds: 60 });
      const losses = () =>
        new Set(
          teams.flatMap(({ events }) => events.flatMap((e) => (e.event === "acquire.lost" ? e.jobId : []))),
        );
      await until("every loss", async () => losses().size === 1000, 60_000);
      expect([await tests.count(queue, "SUCCEEDED"), await tests.attempts(queue)]).toEqual([1000, 1000]);
      const unacknowledged = async () => (await tests.messages("left")) + (await tests.messages("right"));
      await until("all to be acknowledged", async () => (await unacknowledged()) === 0);
    });
  });

  describe("a worker killed after it won the lease", () => {
    it("is followed by another once the lease has run out, and the history shows both", async () => {
      const queue = tests.newQueue();
      const oracle = await tests.open();
      const stolen = await oracle.enqueue(echo, { n: 1 }, { queue });
      expect(await oracle.acquire(stolen.id, "dead-worker")).toMatchObject({ won: true });
      const { worker } = await tests.worker(oracle, tests.newQueue());
      expect(await worker.executeRun(stolen.id)).toMatchObject({
        won: false,
        why: "is leased by worker dead-worker",
      });
      await expireLease(db, stolen.id);
      expect(await worker.executeRun(stolen.id)).toEqual({ won: true });
      await stolen.result({ timeoutSeconds: 10 });
      expect(await attemptsOf(stolen.id)).toEqual(["LEASE_EXPIRED", "SUCCEEDED"]);
    });

    it("with kill -9, supervisor and all, while it ran a message's job", { timeout: 180_000 }, async () => {
      const queue = tests.newQueue();
      const start = (name: string) =>
        runCli(["work", "--handlers", handlers, "--queues", queue], {
          DATABASE_URL: db.url,
          REDIS_URL: tests.redis.url,
          WORKER_ID: name,
          LEASE_SECONDS: "3",
        });
      const first = start("first");
      await until("it to serve", async () => first.output().includes("worker started"), 60_000);
      const oracle = await tests.open();
      const file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
      const job = await oracle.enqueue("logged", { file, ms: 5000 }, { queue });
      await until("it to run", async () => (await job.state()) === "RUNNING");
      const killed = first.children();
      first.process.kill("SIGKILL");
      for (const pid of killed) process.kill(pid, "SIGKILL");
      const second = start("second");
      await job.result({ timeoutSeconds: 90 });
      expect(await db.oracle.attempts(job.id)).toMatchObject([
        { status: "LEASE_EXPIRED", workerId: expect.stringMatching(/^first\./) },
        { status: "SUCCEEDED", workerId: expect.stringMatching(/^second\./) },
      ]);
      expect(readFileSync(file, "utf8").trim().split("\n")).toHaveLength(2);
      second.process.kill("SIGTERM");
      expect(await second.ended).toBe(0);
    });
  });
});
