import type { Contestant, Place, QueueSession } from "../types.ts";
import { bullSession, QUEUE } from "./bullmq.ts";
import { installedVersion } from "./support.ts";

const BULK = 1000;

/** The speed everyone quotes: Redis in memory, nothing on disk. */
export const bullmqRedis: Contestant = {
  name: "bullmq-redis",
  side: "peer",
  store: "redis",
  version: () => installedVersion("bullmq"),
  settings: `concurrency 200, ioredis, addBulk in portions of ${BULK}; Redis without persistence`,
  keeps: "not durable; results kept in Redis; no attempt records",
  jobsShare: 0.5,
  fullOnly: ["drain-4k", "pickup-loaded"],
  recovery: {
    documented: "lockDuration 30 s, stalledInterval 30 s: a stalled job goes back to wait after 30 to 60 s",
    documentedSeconds: 60,
    measure: true,
  },
  openQueue: open,
};

/** The same with the durability PostgreSQL gives: the log is flushed before a command is answered. */
export const bullmqRedisAof: Contestant = {
  ...bullmqRedis,
  name: "bullmq-redis-aof",
  settings: `${bullmqRedis.settings.split(";")[0]}; Redis with appendonly yes, appendfsync always`,
  keeps: "durable (append-only file, flushed on every write); results kept in Redis; no attempt records",
  fullOnly: "all",
  redisConfig: { appendonly: "yes", appendfsync: "always" },
};

async function open(place: Place): Promise<QueueSession> {
  const { Queue, Worker } = await import("bullmq");
  const { hostname, port } = new URL(place.redisUrl);
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  return bullSession({
    queue,
    bulk: BULK,
    concurrency: 200,
    install: async () => undefined,
    makeWorker: (handler, concurrency) => {
      const worker = new Worker(QUEUE, async (job) => handler(job.data), { connection, concurrency });
      worker.on("error", (error) => console.error(error));
      return worker;
    },
    close: async () => undefined,
  });
}
