import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { lying, useRedis } from "../support/dispatch.js";
import { until, useTestDatabase } from "../support/oracle.js";
import { handlers, type Running, runCli } from "../support/process.js";
import { redisInstalled } from "../support/redis.js";

// Messages come a hundred times, backwards and not at all, while Redis is flushed and killed and so are the workers.

const JOBS = Number(process.env.CHAOS_JOBS ?? 3000);
const PORTION = 100;
const SUPERVISORS = 3;
const queue = "chaos-by-message";

const db = useTestDatabase();
const tests = useRedis(db);

function startSupervisor(): Running {
  const env = {
    DATABASE_URL: db.url,
    REDIS_URL: tests.redis.url,
    LEASE_SECONDS: "3",
    POLL_INTERVAL: "500ms",
    LOG_LEVEL: "warn",
  };
  return runCli(["work", "--handlers", handlers, "--queues", queue, "--concurrency", "20"], env);
}

const disasters: Record<string, (supervisors: Running[]) => Promise<void>> = {
  async flush() {
    await tests.redis.command((client) => client.flushall());
  },
  async restart() {
    await tests.redis.kill();
    await sleep(Math.random() * 6000);
    await tests.redis.start();
  },
  async hang() {
    tests.redis.freeze();
    await sleep(Math.random() * 6000);
    tests.redis.thaw();
  },
  async kill(supervisors) {
    const index = Math.floor(Math.random() * supervisors.length);
    const victim = supervisors[index] as Running;
    const children = victim.children();
    victim.process.kill("SIGKILL");
    for (const pid of children) process.kill(pid, "SIGKILL");
    supervisors[index] = startSupervisor();
  },
};

it.skipIf(!redisInstalled)("gives every job one result, whatever Redis and the workers do", async () => {
  let turn = 0;
  const oracle = await tests.open(
    lying(tests.dispatcher(), (jobs) =>
      jobs
        .filter(() => turn++ % 10 !== 0)
        .flatMap((job) => Array.from({ length: 100 }, (_, n) => ({ ...job, attemptCount: n })))
        .reverse(),
    ),
  );
  const supervisors = Array.from({ length: SUPERVISORS }, startSupervisor);
  let submitted = false;
  const submission = (async () => {
    for (let at = 0; at < JOBS; at += PORTION) {
      const inputs = Array.from({ length: Math.min(PORTION, JOBS - at) }, (_, n) => ({ n: at + n }));
      await oracle.enqueueMany("quick", inputs, { queue, maxAttempts: 1000 });
      await sleep(500);
    }
    submitted = true;
  })();

  const names = Object.keys(disasters);
  const happened: string[] = [];
  while (!submitted || happened.length < names.length) {
    const name = names[happened.length % names.length] as string;
    await sleep(500 + Math.random() * 1000);
    await disasters[name]?.(supervisors);
    happened.push(name);
  }
  await submission;
  await until("every job to end", async () => (await tests.count(queue, "SUCCEEDED")) === JOBS, 300_000);

  expect(new Set(happened)).toEqual(new Set(names));
  const [sums] = await db.sql(
    `SELECT (SELECT count(*)::int FROM oracle.results) AS results,
       count(*) FILTER (WHERE status = 'SUCCEEDED')::int AS succeeded,
       count(*) FILTER (WHERE status NOT IN ('SUCCEEDED', 'LEASE_EXPIRED', 'RELEASED'))::int AS others
     FROM oracle.attempts`,
  );
  expect(sums).toEqual({ results: JOBS, succeeded: JOBS, others: 0 });
  for (const { process } of supervisors) process.kill("SIGTERM");
  // One that was started a moment ago dies of the signal before it listens to it.
  for (const { ended } of supervisors) expect([0, "SIGTERM"]).toContain(await ended);
});
