import pg from "pg";
import type { Contestant, Place, QueueSession } from "../types.ts";
import { bullSession, QUEUE } from "./bullmq.ts";
import { installedVersion } from "./support.ts";

const BULK = 1000;
const POOL = 8;
const CONCURRENCY = 50;

export const bullmqPostgres: Contestant = {
  name: "bullmq-postgres",
  side: "peer",
  store: "postgres",
  version: () => installedVersion("bullmq"),
  settings: `createPostgresBackend, concurrency ${CONCURRENCY}, pool ${POOL} per queue and worker (with 50 and 200 it is slower and runs jobs twice here), addBulk in portions of ${BULK}`,
  keeps: "durable; results kept on the job row; no attempt records; no enqueue inside a caller's transaction",
  jobsShare: 0.1,
  loadShare: 0.1,
  fullOnly: ["drain-4k", "pickup", "pickup-loaded", "snapshot", "in-flight"],
  recovery: {
    documented: "lockDuration 30 s, stalledInterval 30 s: a stalled job goes back to wait after 30 to 60 s",
    documentedSeconds: 60,
    measure: true,
  },
  openQueue: open,
};

async function open(place: Place): Promise<QueueSession> {
  const bull = await import("bullmq");
  const { Queue, Worker } = bull.withBackend(bull.createPostgresBackend);
  const connection = { connectionString: place.postgresUrl, max: POOL };
  // Created on first use: a Queue refuses a database whose schema is not there yet.
  const install = async () => {
    const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 1 });
    const client = await pool.connect();
    await bull.runMigrations(client);
    client.release();
    await pool.end();
  };
  await install();
  const queue = new Queue(QUEUE, { connection });
  return bullSession({
    queue,
    bulk: BULK,
    concurrency: CONCURRENCY,
    install: async () => undefined,
    makeWorker: (handler, concurrency) => {
      const worker = new Worker(QUEUE, async (job) => handler(job.data), { connection, concurrency });
      worker.on("error", (error) => console.error(error));
      return worker;
    },
    close: async () => undefined,
  });
}
