import pg from "pg";
import type { Contestant, Handler, JobInput, Place, QueueSession, WorkerOptions } from "../types.ts";
import { ask, inPortions, installedVersion, pollUntil } from "./support.ts";

const TASK = "bench";
const BULK = 5000;

export const graphileWorker: Contestant = {
  name: "graphile-worker",
  side: "peer",
  store: "postgres",
  version: () => installedVersion("graphile-worker"),
  settings:
    "localQueue.size 2000, concurrentJobs 100, completeJobBatchDelay and failJobBatchDelay 0 ms (measured: no worse " +
    `for the latency of one job); bulk: addJobs in portions of ${BULK}; in a transaction: add_job, add_jobs in SQL`,
  keeps: "durable; the job row is deleted on success: no result, no attempts",
  recovery: {
    documented: "a job locked by a dead worker is taken again after 4 hours",
    documentedSeconds: 4 * 3600,
    measure: false,
  },
  fullOnly: ["in-flight"],
  openQueue: open,
};

async function open(place: Place): Promise<QueueSession> {
  const graphile = await import("graphile-worker");
  const logger = new graphile.Logger(() => () => undefined);
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 16 });
  pool.on("error", () => undefined);
  const utils = await graphile.makeWorkerUtils({ pgPool: pool, logger });
  const spec = (payload: JobInput, runAt?: Date) => ({
    identifier: TASK,
    payload,
    ...(runAt ? { runAt } : {}),
  });

  return {
    install: () => utils.migrate(),
    enqueue: async (input) => void (await utils.addJob(TASK, input)),
    enqueueMany: (inputs, options) => {
      const runAt = options?.delaySeconds ? new Date(Date.now() + options.delaySeconds * 1000) : undefined;
      return inPortions(inputs, BULK, (portion) => utils.addJobs(portion.map((input) => spec(input, runAt))));
    },
    enqueueIn: async (client, input) =>
      void (await client.query("select graphile_worker.add_job($1, $2::json)", [
        TASK,
        JSON.stringify(input),
      ])),
    enqueueManyIn: async (client, inputs) => {
      // The SQL form of addJobs: its documentation gives no library call that takes a caller's client.
      await client.query(
        `select 1 from graphile_worker.add_jobs(array(
           select row($1, e.payload, null, null, null, null, null, null)::graphile_worker.job_spec
           from json_array_elements($2::json) as e(payload)))`,
        [TASK, JSON.stringify(inputs)],
      );
    },
    startWorker: async (handler, options) => {
      const runner = await graphile.run({
        noHandleSignals: true,
        pgPool: pool,
        logger,
        taskList: { [TASK]: async (payload) => void (await (handler as Handler)(payload as JobInput)) },
        preset: { worker: presetFor(options) },
      });
      return {
        drained: () =>
          pollUntil(() =>
            ask(pool, "select not exists (select 1 from graphile_worker._private_jobs) as value"),
          ),
        stop: () => runner.stop(),
      };
    },
    waiting: () => ask<number>(pool, "select count(*)::int as value from graphile_worker._private_jobs"),
    finished: async () => null,
    close: async () => {
      await utils.release();
      await pool.end();
    },
  };
}

function presetFor(options: WorkerOptions) {
  const concurrentJobs = options.concurrency ?? 100;
  return {
    concurrentJobs,
    localQueue: { size: Math.max(2000, concurrentJobs) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
}
