import { parentPort, workerData } from "node:worker_threads";
import { Database } from "../store/database.js";
import { renew } from "../store/renew.js";
import { settle } from "../store/settle.js";
import { registerWorker, removeWorker } from "../store/workers.js";
import { BlockedLoop, LOOK_MS, timedOutFromOutside } from "./blocked-loop.js";
import { askForReplacement } from "./journal.js";
import type { KeeperCommand, KeeperReport, KeeperThreadData } from "./lease-keeper.js";
import { LoopClock } from "./loop-clock.js";

// The renewal thread: see LeaseKeeper. It knows nothing of jobs but their ids.

const { database, worker, supervised, clock: memory } = workerData as KeeperThreadData;
const port = parentPort;
if (!port) throw new Error("lease-thread runs as a worker thread only");

// Its own reserved connection: a pool that is busy or exhausted elsewhere does not delay a renewal.
const db = new Database({ ...database, maxConnections: 1, applicationName: "oracle-worker lease" });
/** Attempt to its job, its slot in the shared clock, and when its lease was last known to hold. */
const held = new Map<string, { jobId: string; slot: number; renewedAt: number }>();
const clock = new LoopClock(memory);
const loop = new BlockedLoop(clock);
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

/**
 * The event loop ends attempts at their timeouts. While it is blocked this thread does: a handler keeps its lease
 * past its timeout no more than one that merely takes long.
 */
async function endOverdueWhileBlocked(): Promise<void> {
  if (!loop.look()) return;
  const now = LoopClock.now();
  const overdue = [...held].flatMap(([attemptId, { jobId, slot }]) => {
    const times = slot < 0 ? undefined : clock.read(slot);
    if (!times || times.endsAt > now) return [];
    return [
      { lease: { jobId, attemptId, attemptNo: 0 }, outcome: timedOutFromOutside(times.retryDelaySeconds) },
    ];
  });
  if (overdue.length === 0) return;
  const won = await settle(db, overdue);
  for (const { lease } of overdue) held.delete(lease.attemptId);
  const blocked = overdue.map(({ lease }) => lease).filter(({ attemptId }) => won.has(attemptId));
  if (blocked.length === 0) return;
  tell({ blocked });
  if (supervised) askForReplacement();
}

let looking = false;
const lookTimer = setInterval(() => {
  if (looking) return;
  looking = true;
  // A database that does not answer now is asked again at the next look.
  endOverdueWhileBlocked()
    .catch(() => {})
    .finally(() => {
      looking = false;
    });
}, LOOK_MS);

port.on("message", (command: KeeperCommand) => {
  if ("take" in command) {
    const now = performance.now();
    for (let at = 0; at < command.take.length; at += 3) {
      const [jobId, attemptId, slot] = command.take.slice(at, at + 3) as [string, string, number];
      held.set(attemptId, { jobId, slot, renewedAt: now });
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
  clearInterval(lookTimer);
  await beating;
  await removeWorker(db, worker.workerId).catch(() => {});
  await db.close();
  port?.close();
}

let beating = beat();
void beating.then(() => tell({ ready: true }));
