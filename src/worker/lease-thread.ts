import { parentPort, workerData } from "node:worker_threads";
import { Database } from "../store/database.js";
import { renew } from "../store/renew.js";
import { registerWorker, removeWorker } from "../store/workers.js";
import type { KeeperCommand, KeeperData, KeeperReport } from "./lease-keeper.js";

// The renewal thread: see LeaseKeeper. It knows nothing of jobs but their ids.

const { database, worker } = workerData as KeeperData;
const port = parentPort;
if (!port) throw new Error("lease-thread runs as a worker thread only");

// Its own reserved connection: a pool that is busy or exhausted elsewhere does not delay a renewal.
const db = new Database({ ...database, maxConnections: 1, applicationName: "oracle-worker lease" });
/** Attempt to its job and when its lease was last known to hold, by this machine's monotonic clock. */
const held = new Map<string, { jobId: string; renewedAt: number }>();
const leaseMs = worker.leaseSeconds * 1000;
const RETRY_MS = Math.min(1000, leaseMs / 10);
let draining = false;
let troubled = false;
let timer: NodeJS.Timeout | undefined;
let stopping = false;

const tell = (report: KeeperReport) => port.postMessage(report);

async function beat(): Promise<void> {
  let wait = leaseMs / 3;
  try {
    await registerWorker(db, worker, draining);
    await renewAll();
    if (troubled) tell({ recovered: true });
    troubled = false;
  } catch (error) {
    if (!troubled) tell({ trouble: error instanceof Error ? error.message : String(error) });
    troubled = true;
    wait = RETRY_MS;
  }
  giveUpExpired();
  if (!stopping) timer = setTimeout(nextBeat, wait);
}

function nextBeat(): void {
  beating = beat();
}

async function renewAll(): Promise<void> {
  if (held.size === 0) return;
  const leases = [...held].map(([attemptId, { jobId }]) => ({ jobId, attemptId }));
  const startedAt = performance.now();
  const kept = await renew(db, leases, worker.leaseSeconds);
  const lost: string[] = [];
  for (const { attemptId } of leases) {
    const entry = held.get(attemptId);
    if (!entry) continue;
    if (kept.has(attemptId)) entry.renewedAt = startedAt;
    else {
      held.delete(attemptId);
      lost.push(attemptId);
    }
  }
  if (lost.length > 0) tell({ lost, why: "the database says it ran out or was taken over" });
}

/** Without a reply from the database a lease ends by our own watch, at most a round trip after the database's. */
function giveUpExpired(): void {
  const now = performance.now();
  const lost = [...held]
    .filter(([, entry]) => now - entry.renewedAt >= leaseMs)
    .map(([attemptId]) => attemptId);
  for (const attemptId of lost) held.delete(attemptId);
  if (lost.length > 0) tell({ lost, why: "it ran out while the database did not answer" });
}

port.on("message", (command: KeeperCommand) => {
  if ("take" in command) {
    const now = performance.now();
    for (let at = 0; at < command.take.length; at += 2) {
      const [jobId, attemptId] = command.take.slice(at, at + 2) as [string, string];
      held.set(attemptId, { jobId, renewedAt: now });
    }
  } else if ("drop" in command) {
    for (const attemptId of command.drop) held.delete(attemptId);
  } else if ("draining" in command) {
    draining = true;
    registerWorker(db, worker, draining).catch(() => {});
  } else void stop();
});

/** A beat under way ends first: it would write the worker's row anew after it was removed. */
async function stop(): Promise<void> {
  stopping = true;
  clearTimeout(timer);
  await beating;
  await removeWorker(db, worker.workerId).catch(() => {});
  await db.close();
  port?.close();
}

let beating = beat();
void beating.then(() => tell({ ready: true }));
