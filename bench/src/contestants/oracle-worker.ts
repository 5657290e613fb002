import pg from "pg";
import type {
  Contestant,
  Handler,
  JobInput,
  Place,
  QueueSession,
  StepsSession,
  WorkerOptions,
} from "../types.ts";
import {
  anything,
  type Dispatcher,
  type EnqueueOptions,
  type JobContext,
  loadOracle,
  openDispatcher,
  oracleVersion,
  whyNotBuilt,
} from "./oracle-api.ts";
import { ask, pollUntil } from "./support.ts";

const TYPE = "bench";
/** Timeout of the bench jobs: longer than any sleeping job of the in-flight workload. */
const TIMEOUT_SECONDS = 600;
export const NOTHING_LEFT =
  "select not exists (select 1 from oracle.jobs where completed_at is null) as value";
const STEP_COUNT_SQL = "select count(*)::int as value from oracle.steps";

export const oracleWorker: Contestant = {
  name: "oracle-worker",
  side: "ours",
  store: "postgres",
  version: oracleVersion,
  settings:
    "concurrency 1000 (latency: 200); connections take the restricted worker role, forced row-level security and " +
    "triggers on; in a caller's transaction: the caller's login",
  keeps: "durable; input, every attempt, result with hash and provenance, all fenced",
  recovery: { documented: "unsupervised: lease (60 s) + 1 s", documentedSeconds: 61, measure: true },
  sharesByTenant: true,
  unavailable: whyNotBuilt,
  openQueue: (place) => open(place),
  openSteps,
};

/** The same with wake-ups through Redis, to set beside BullMQ's own figures. */
export const oracleWorkerRedis: Contestant = {
  ...oracleWorker,
  name: "oracle-worker-redis",
  usesRedis: true,
  settings: `${oracleWorker.settings}; jobs announced through BullMQ on a Redis without persistence, leases won by id`,
  only: ["drain", "pickup", "pickup-loaded"],
  fullOnly: "all",
  openQueue: async (place) => open(place, await openDispatcher(place.redisUrl)),
};

/** A job type that runs `run`; producers register the type without running anything. */
function definition(run: (context: JobContext) => Promise<unknown> | unknown) {
  return { type: TYPE, input: anything, output: anything, timeoutSeconds: TIMEOUT_SECONDS, run };
}

async function open(place: Place, dispatcher?: Dispatcher): Promise<QueueSession> {
  const api = await loadOracle();
  const oracle = await api.connect({
    databaseUrl: place.postgresUrl,
    ...(dispatcher ? { dispatcher } : {}),
  });
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 1 });
  const job = api.defineJob(definition(() => ({ ok: true })));

  return {
    install: async () => void (await oracle.migrate()),
    enqueue: async (input) => void (await oracle.enqueue(job, input)),
    enqueueMany: async (inputs, options) => void (await oracle.enqueueMany(job, inputs, toOptions(options))),
    enqueueIn: async (client, input) => void (await oracle.enqueue(job, input, { client })),
    enqueueManyIn: async (client, inputs) => void (await oracle.enqueueMany(job, inputs, { client })),
    startWorker: async (handler, options) => {
      const worked = api.defineJob(definition(({ input }) => (handler as Handler)(input as JobInput)));
      const worker = await api.createWorker(oracle, { jobs: [worked], concurrency: concurrencyFor(options) });
      // Not worker.drained(): the store is asked in the same way as for every peer.
      return { drained: () => pollUntil(() => ask(pool, NOTHING_LEFT)), stop: () => worker.stop() };
    },
    waiting: () =>
      ask<number>(pool, "select count(*)::int as value from oracle.jobs where completed_at is null"),
    finished: () =>
      ask<number>(pool, "select count(*)::int as value from oracle.jobs where state = 'SUCCEEDED'"),
    close: async () => {
      await oracle.close();
      await dispatcher?.close();
      await pool.end();
    },
  };
}

async function openSteps(place: Place): Promise<StepsSession> {
  const api = await loadOracle();
  const oracle = await api.connect({ databaseUrl: place.postgresUrl });
  const pool = new pg.Pool({ connectionString: place.postgresUrl, max: 1 });
  const job = api.defineJob(
    definition(async ({ input, step }) => {
      const { n, steps } = input as { n: number; steps: number };
      for (let at = 0; at < steps; at++) await step(`step-${at}`, () => ({ ok: true, n, step: at }));
      return { ok: true, n };
    }),
  );
  return {
    install: async () => void (await oracle.migrate()),
    run: async (jobs, steps, atATime) => {
      await oracle.enqueueMany(
        job,
        Array.from({ length: jobs }, (_, n) => ({ n, steps })),
      );
      const worker = await api.createWorker(oracle, { jobs: [job], concurrency: atATime });
      await pollUntil(() => ask<boolean>(pool, NOTHING_LEFT));
      await worker.stop();
    },
    durableSteps: () => ask<number>(pool, STEP_COUNT_SQL),
    close: async () => {
      await oracle.close();
      await pool.end();
    },
  };
}

function concurrencyFor(options: WorkerOptions): number {
  return options.concurrency ?? (options.mode === "throughput" ? 1000 : 200);
}

function toOptions(options: { delaySeconds?: number; tenant?: string } = {}): EnqueueOptions {
  const { delaySeconds, tenant } = options;
  return {
    ...(delaySeconds ? { runAfter: new Date(Date.now() + delaySeconds * 1000) } : {}),
    ...(tenant === undefined ? {} : { tenant }),
  };
}
