import { type Database, statement } from "./database.js";
import { FREE_INTERRUPTIONS } from "./settle.js";

// 011_endings.sql: ends the leases of jobs that the dead process had started, and hands back the others.
const freeWorker = statement<{ started: number; unstarted: number }>(
  "free-worker",
  `SELECT started, unstarted FROM {schema}.free_worker($1, $2, $3, $4)`,
);

/** For a worker process that is known to have ended. */
export async function freeDeadWorker(
  db: Database,
  workerId: string,
  startedJobIds: string[],
  cause: "WORKER_CRASHED" | "PROCESS_REPLACED" | "SHUTDOWN",
): Promise<{ started: number; unstarted: number }> {
  const [row] = await db.query(freeWorker, [workerId, startedJobIds, FREE_INTERRUPTIONS, cause]);
  return { started: row?.started ?? 0, unstarted: row?.unstarted ?? 0 };
}
