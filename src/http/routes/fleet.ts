import { OracleError } from "../../core/errors.js";
import { type SettingName, settingsTable } from "../../core/settings.js";
import type { Database } from "../../store/database.js";
import { type QueueState, readQueues, readWorkers, type WorkerState } from "../../store/fleet.js";
import { pauseQueue } from "../../store/queues.js";
import type { Handlers, Services } from "../call.js";
import { iso, isoOrNull } from "../to-json.js";
import type { QueueJson, SettingJson, WorkerJson } from "../types.js";

type Fleet = "listQueues" | "pauseQueue" | "resumeQueue" | "listWorkers" | "listSettings" | "crashWorker";

export function fleetRoutes({ oracle, db, crash }: Services): Handlers<Fleet> {
  return {
    listQueues: async ({ within }) => ({ items: (await within(readQueues)).map(queueJson), next: null }),
    pauseQueue: ({ params: { queue = "" }, within }) => setPaused(db, queue, true, within),
    resumeQueue: ({ params: { queue = "" }, within }) => setPaused(db, queue, false, within),
    listWorkers: async ({ within }) => ({ items: (await within(readWorkers)).map(workerJson), next: null }),

    async listSettings() {
      const names = Object.keys(settingsTable) as SettingName[];
      return { items: names.map((name) => settingJson(name, oracle.settings[name])), next: null };
    },

    async crashWorker() {
      if (crash) return crash();
      throw new OracleError("NOT_FOUND", "Only `oracle-worker dev` has a worker to kill.");
    },
  };
}

type Within = <T>(work: (own: Database) => Promise<T>) => Promise<T>;

/** Queues belong to no tenant: only somebody who sees every tenant changes them. */
async function setPaused(db: Database, queue: string, paused: boolean, within: Within): Promise<QueueJson> {
  await db.asEveryTenant((own) => pauseQueue(own, queue, paused));
  const found = (await within(readQueues)).find((state) => state.queue === queue);
  if (found) return queueJson(found);
  throw new OracleError("NOT_FOUND", `There is no queue ${JSON.stringify(queue)}.`, { field: "queue" });
}

function queueJson(state: QueueState): QueueJson {
  return {
    queue: state.queue,
    paused: state.paused,
    ageing_seconds: state.ageingSeconds,
    ready: state.ready,
    running: state.running,
    oldest_ready_at: isoOrNull(state.oldestReadyAt),
  };
}

function workerJson(state: WorkerState): WorkerJson {
  return {
    worker_id: state.workerId,
    host: state.host,
    pid: state.pid,
    version: state.version,
    alive: state.alive,
    draining: state.draining,
    concurrency: state.concurrency,
    running: state.running,
    queues: state.queues,
    types: state.jobTypes,
    started_at: iso(state.startedAt),
    seen_at: iso(state.seenAt),
  };
}

/** An address may hold a password; that there is one is all that is told. */
function settingJson(name: SettingName, value: unknown): SettingJson {
  const { about, fallback } = settingsTable[name];
  const shown = value === undefined ? null : name.endsWith("_URL") ? "(set)" : String(value);
  return { name, about, value: shown, is_default: String(value) === String(fallback) };
}
