import pg from "pg";
import type { PgBoss as Boss, Db, Job, WorkOptions } from "pg-boss";
import type { Contestant, JobInput, Place, QueueSession, WorkerOptions } from "../types.ts";
import { ask, inPortions, installedVersion, pollUntil } from "./support.ts";

const QUEUE = "bench";
const BULK = 5000;

export const pgBoss: Contestant = {
  name: "pg-boss",
  side: "peer",
  store: "postgres",
  version: () => installedVersion("pg-boss"),
  settings:
    "perJobResults, polling 0.5 s, LISTEN/NOTIFY on; throughput: batchSize 500, localConcurrency 3, " +
    "burstWhenBatchFull (batchSize 100, localConcurrency 4 with 4 KB results: its settling statement is quadratic " +
    `in the batch); latency: batchSize 100, localConcurrency 2; bulk: insert in portions of ${BULK}, returnId off`,
  keeps: "durable; one row per job with its result (7 days by default); no attempt records",
  recovery: {
    documented:
      "a job of a dead worker expires after 15 minutes (expireInSeconds), heartbeats are off by default",
    documentedSeconds: 900,
    measure: false,
  },
  fullOnly: ["snapshot", "in-flight"],
  openQueue: open,
};

async function open(place: Place): Promise<QueueSession> {
  const { PgBoss } = await import("pg-boss");
  const boss: Boss = new PgBoss({
    connectionString: place.postgresUrl,
    max: 16,
    useListenNotify: true,
    schedule: false,
  });
  boss.on("error", (error) => console.error(error));
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 1 });
  let started = false;
  const start = async () => {
    if (started) return;
    started = true;
    await boss.start();
    // A queue announces itself by NOTIFY only where the worker listens; it is one statement per insert.
    await boss.createQueue(QUEUE, { notify: true });
  };
  await start();
  const insert = (inputs: JobInput[], extra: object, db?: Db) =>
    boss.insert(
      QUEUE,
      inputs.map((data) => ({ data, ...extra })),
      { returnId: false, ...(db ? { db } : {}) },
    );

  return {
    install: start,
    enqueue: async (input) => void (await boss.send(QUEUE, input)),
    enqueueMany: (inputs, options) => {
      const extra = options?.delaySeconds ? { startAfter: options.delaySeconds } : {};
      return inPortions(inputs, BULK, (portion) => insert(portion, extra));
    },
    enqueueIn: async (client, input) => void (await boss.send(QUEUE, input, { db: onClient(client) })),
    enqueueManyIn: async (client, inputs) => void (await insert(inputs, {}, onClient(client))),
    startWorker: async (handler, options) => {
      await boss.work(QUEUE, settingsFor(options), (jobs: Job<JobInput>[]) =>
        Promise.all(
          jobs.map(async (job) => ({
            id: job.id,
            status: "completed" as const,
            output: await handler(job.data),
          })),
        ),
      );
      return {
        drained: () =>
          pollUntil(() =>
            ask(pool, "select not exists (select 1 from pgboss.job where state < 'completed') as value"),
          ),
        stop: () => boss.offWork(QUEUE, { wait: true }),
      };
    },
    waiting: () =>
      ask<number>(pool, "select count(*)::int as value from pgboss.job where state < 'completed'"),
    finished: () =>
      ask<number>(pool, "select count(*)::int as value from pgboss.job where state = 'completed'"),
    close: async () => {
      await boss.stop({ graceful: false });
      await pool.end();
    },
  };
}

function settingsFor(options: WorkerOptions): WorkOptions & { perJobResults: true } {
  const common = {
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
    perJobResults: true as const,
  };
  if (options.mode === "in-flight")
    return { ...common, batchSize: options.concurrency ?? 1000, localConcurrency: 1 };
  if (options.mode === "latency") return { ...common, batchSize: 100, localConcurrency: 2 };
  if ((options.payloadBytes ?? 0) > 1000) return { ...common, batchSize: 100, localConcurrency: 4 };
  return { ...common, batchSize: 500, localConcurrency: 3 };
}

/** pg-boss enqueues inside a caller's transaction through any object that runs SQL. */
function onClient(client: pg.PoolClient): Db {
  return { executeSql: (text, values) => client.query(text, values) };
}
