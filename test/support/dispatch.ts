import { connect, createWorker, type Oracle } from "oracle-worker";
import { type Announcement, type Dispatcher, redisDispatcher } from "oracle-worker/redis";
import { afterAll, beforeAll } from "vitest";
import type { WorkerEvent } from "../../dist/core/events.js";
import type { Worker } from "../../dist/worker/worker.js";
import { echo, nap } from "./jobs.js";
import type { TestDatabase } from "./oracle.js";
import { redisInstalled, TestRedis } from "./redis.js";

export interface WorkerUnderTest {
  worker: Worker;
  events: WorkerEvent[];
}

/** A Redis for the calling test file, with connections and workers that use it; all are closed at its end. */
export function useRedis(db: TestDatabase): DispatchedTests {
  const tests = new DispatchedTests(db);
  beforeAll(() => tests.start());
  afterAll(() => tests.close());
  return tests;
}

export class DispatchedTests {
  readonly redis = new TestRedis();
  private readonly workers: Worker[] = [];
  private readonly oracles: Oracle[] = [];
  private readonly dispatchers: Dispatcher[] = [];
  private queueNumber = 0;

  constructor(private readonly db: TestDatabase) {}

  async start(): Promise<void> {
    if (redisInstalled) await this.redis.start();
  }

  newQueue(): string {
    return `redis-${this.queueNumber++}`;
  }

  dispatcher(prefix?: string): Dispatcher {
    const dispatcher = redisDispatcher({ url: this.redis.url, ...(prefix ? { prefix } : {}) });
    this.dispatchers.push(dispatcher);
    return dispatcher;
  }

  /** A connection that announces through the dispatcher; its workers listen to it. */
  async open(dispatcher = this.dispatcher()): Promise<Oracle> {
    const oracle = await connect({ databaseUrl: this.db.url, dispatcher });
    this.oracles.push(oracle);
    return oracle;
  }

  async worker(
    oracle: Oracle,
    queue: string,
    options: { concurrency?: number; leaseSeconds?: number; pollSeconds?: number } = {},
  ): Promise<WorkerUnderTest> {
    const events: WorkerEvent[] = [];
    const worker = await createWorker(oracle, {
      jobs: [echo, nap],
      queues: [queue],
      concurrency: 20,
      pollSeconds: 0.2,
      ...options,
      onEvent: (event) => events.push(event),
    });
    this.workers.push(worker);
    return { worker, events };
  }

  /** Jobs of the queue in a state, or in any. */
  async count(queue: string, state = "%"): Promise<number> {
    const [row] = await this.db.sql(
      "SELECT count(*)::int AS n FROM oracle.jobs WHERE queue_name = $1 AND state::text LIKE $2",
      [queue, state],
    );
    return row?.n as number;
  }

  /** How often the queue's jobs were run, failures included. */
  async attempts(queue: string): Promise<number> {
    const [row] = await this.db.sql(
      "SELECT count(*)::int AS n FROM oracle.attempts JOIN oracle.jobs USING (job_id) WHERE queue_name = $1",
      [queue],
    );
    return row?.n as number;
  }

  /** Messages in Redis that nobody has acknowledged, of all queues under the prefix. */
  messages(prefix = "oracle"): Promise<number> {
    return this.redis.command(
      async (client) => (await client.keys(`${prefix}:jobs-*:????????-????-*`)).length,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await Promise.all(this.oracles.map((oracle) => oracle.close()));
    await Promise.all(this.dispatchers.map((dispatcher) => dispatcher.close()));
    await this.redis.close();
  }
}

/** Announcements are repeated, dropped and shuffled on their way to Redis. */
export function lying(inner: Dispatcher, twist: (jobs: Announcement[]) => Announcement[]): Dispatcher {
  return {
    announce: (jobs) => inner.announce(twist(jobs)),
    listen: (queues, events) => inner.listen(queues, events),
    close: () => inner.close(),
  };
}

/** What arrives is written down. */
export function overheard(inner: Dispatcher, heard: string[]): Dispatcher {
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
