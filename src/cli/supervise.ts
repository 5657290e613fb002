import { fileURLToPath } from "node:url";
import type { SettingName, Settings } from "../core/settings.js";
import type { Logger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import { uniqueWorkerId } from "../worker/id.js";
import { Supervisor } from "../worker/supervisor.js";
import type { ChildOrders } from "./work-child.js";

export interface SuperviseOptions {
  oracle: Oracle;
  logger: Logger;
  processes: number;
  handlers?: string | undefined;
  tenant?: string | undefined;
  drain?: boolean;
  /** Also serves the job types of demonstrations. */
  demo?: boolean;
  onReady?: (workerId: string) => void;
}

/** Worker processes for `work`, `dev` and `demo`, all alike: what runs in development is what runs later. */
export function supervise(options: SuperviseOptions): Supervisor {
  const { oracle, logger, onReady } = options;
  const settings = toText({ ...oracle.settings, DATABASE_URL: oracle.db.options.url });
  return new Supervisor({
    processes: options.processes,
    childModule: fileURLToPath(new URL("./work-child.js", import.meta.url)),
    childEnv: (workerId) => {
      const orders: ChildOrders = {
        workerId,
        settings,
        handlers: options.handlers,
        tenant: options.tenant,
        drain: options.drain ?? false,
        demo: options.demo ?? false,
      };
      return { ...process.env, ORACLE_WORKER_CHILD: JSON.stringify(orders) };
    },
    mintWorkerId: () => uniqueWorkerId(oracle.settings.WORKER_ID),
    db: oracle.db.with({ maxConnections: 1 }),
    ...(onReady ? { onReady } : {}),
    onCrash: ({ workerId, pid, how, started, unstarted }) =>
      logger.error(
        { worker_id: workerId, child_pid: pid, charged: started, released: unstarted },
        `worker process died (${how}); its jobs are free again`,
      ),
    onReplace: ({ workerId, pid, released }) =>
      logger.error(
        { worker_id: workerId, child_pid: pid, released },
        "worker process replaced: a handler blocked its event loop past the job's timeout; give such types isolation thread or process",
      ),
    onTrouble: (error) =>
      logger.error(
        `cannot free the jobs of a dead process yet: ${error instanceof Error ? error.message : error}`,
      ),
  });
}

/** First signal: drain. Second: abort. Third: kill. */
export function onSignals(act: () => void): () => void {
  process.on("SIGTERM", act);
  process.on("SIGINT", act);
  return () => {
    process.off("SIGTERM", act);
    process.off("SIGINT", act);
  };
}

/** Settings as the environment would give them. */
function toText(settings: Settings): Partial<Record<SettingName, string>> {
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}
