import { summarizeText } from "../ai/summarize-text.js";
import { connect } from "../connect.js";
import { readSettings, type SettingName } from "../core/settings.js";
import { createWorker } from "../create-worker.js";
import { loadHandlers } from "../handlers/load.js";
import { surviveStrays } from "../handlers/stray.js";
import { createLogger, jobLog, logEvents } from "../observe/log.js";
import { WorkerMetrics } from "../observe/metrics.js";
import { askForReplacement, pipeJournal } from "../worker/journal.js";
import { demoSlow } from "./demo-handlers.js";
import { exitCodeOf, printError } from "./errors.js";
import { untilReachable } from "./open.js";
import { openRedis } from "./redis.js";

/** What the supervisor tells a worker process, through the environment variable ORACLE_WORKER_CHILD. */
export interface ChildOrders {
  workerId: string;
  settings: Partial<Record<SettingName, string>>;
  handlers: string | undefined;
  tenant: string | undefined;
  drain: boolean;
  demo: boolean;
}

/** How long a new process waits for a database that does not answer. */
const CONNECT_PATIENCE_MS = 30_000;

async function main(): Promise<void> {
  const orders = JSON.parse(process.env.ORACLE_WORKER_CHILD ?? "{}") as ChildOrders;
  // Handlers and what they start have no business with the database's password.
  delete process.env.ORACLE_WORKER_CHILD;
  const settings = readSettings(orders.settings);
  const logger = createLogger(settings.LOG_LEVEL).child({ worker_id: orders.workerId });
  const builtIn = orders.demo ? [summarizeText, demoSlow] : [summarizeText];
  const jobs = [...builtIn, ...(orders.handlers ? await loadHandlers(orders.handlers) : [])];
  const dispatcher = await openRedis(settings);
  const oracle = await connect({ settings, ...(dispatcher ? { dispatcher } : {}) });
  const log = logEvents(logger);
  // Counting costs a little for every job; without a port nobody could read it.
  const metrics = settings.HEALTH_PORT === 0 ? undefined : new WorkerMetrics();
  let redisIsAway: string | null = null;
  const worker = await untilReachable(CONNECT_PATIENCE_MS, () =>
    createWorker(oracle, {
      jobs: withoutReplaced(jobs),
      workerId: orders.workerId,
      ...(orders.tenant === undefined ? {} : { tenant: orders.tenant }),
      onEvent: (event) => {
        log(event);
        metrics?.hear(event);
        if (event.event === "dispatch.lost") redisIsAway = event.why;
        if (event.event === "dispatch.restored") redisIsAway = null;
        // It cannot keep what it holds; the supervisor frees that and starts another process.
        if (event.event === "worker.broken") process.exit(1);
      },
      log: jobLog(logger),
      journal: pipeJournal(),
    }),
  );

  metrics?.watchPool(() => worker.poolUse());
  surviveStrays({
    late: (thrown) => logger.error({ err: thrown }, "an inline handler left an error uncaught after its end"),
    unowned: (thrown) => {
      // With the supervisor everybody who read our words is gone. Said to nobody, they end nothing: the drain does.
      if (!process.connected && (thrown as { code?: string }).code === "EPIPE") return;
      if (!process.connected) process.exit(1);
      logger.error({ err: thrown }, "an error that belongs to no attempt; this process is replaced");
      // What this left undone nobody knows. The supervisor lets the attempts that run here go free of charge.
      askForReplacement();
    },
  });

  let signals = 0;
  const end = async () => {
    if (signals++ > 0) return worker.abort();
    await worker.stop();
    await oracle.close();
    await dispatcher?.close();
    // A handler that ignores its signal would keep this process alive; its job was not handed back.
    process.exit(0);
  };
  process.on("SIGTERM", () => void end());
  process.on("SIGINT", () => void end());
  process.on("disconnect", () => void end());
  process.on("message", async (question) => {
    if (question === "metrics") process.send?.({ metrics: await metrics?.snapshot() });
    if (question === "redisIsAway") process.send?.({ redisIsAway });
  });
  process.send?.("ready");
  if (orders.drain) {
    await worker.drained();
    await end();
  }
}

/** A handlers path may define a built-in type anew; the later definition counts. */
function withoutReplaced<T extends { type: string }>(jobs: T[]): T[] {
  return [...new Map(jobs.map((job) => [job.type, job])).values()];
}

main().catch((error: unknown) => {
  printError(error, false);
  process.exit(exitCodeOf(error));
});
