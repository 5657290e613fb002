import { parentPort, workerData } from "node:worker_threads";
import { Database } from "../store/database.js";
import { renew } from "../store/renew.js";
import { settle } from "../store/settle.js";
import { registerWorker, removeWorker } from "../store/workers.js";
import { BlockedLoop, LOOK_MS, timedOutFromOutside } from "./blocked-loop.js";
import { HeldLeases } from "./held-leases.js";
import { askForReplacement } from "./journal.js";
import type { KeeperCommand, KeeperReport, KeeperThreadData } from "./lease-keeper.js";
import type { HeldLease } from "./lease-page.js";
import { LoopClock } from "./loop-clock.js";

// The renewal thread: see LeaseKeeper. It knows nothing of jobs but their ids.

const { database, worker, supervised, clock: memory } = workerData as KeeperThreadData;
const port = parentPort;
if (!port) throw new Error("lease-thread runs as a worker thread only");

// Its own reserved connection: a pool that is busy or exhausted elsewhere does not delay a renewal.
const db = new Database({ ...database, maxConnections: 1, applicationName: "oracle-worker lease" });
const held = new HeldLeases();
const loop = new BlockedLoop(new LoopClock(memory));
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
  const leases = held.all();
  if (leases.length === 0) return;
  const startedAt = LoopClock.now();
  const kept = await renew(db, leases, worker.leaseSeconds);
  for (const lease of leases) if (kept.has(lease.attemptId)) held.renewed(lease, startedAt);
  giveUp(
    leases.filter(({ attemptId }) => !kept.has(attemptId)),
    "the database says it ran out or was taken over",
  );
}

/** Without a reply from the database a lease ends by our own watch, at most a round trip after the database's. */
function giveUpExpired(): void {
  const now = LoopClock.now();
  giveUp(
    held.all().filter(({ renewedAt }) => now - renewedAt >= leaseMs),
    "it ran out while the database did not answer",
  );
}

function giveUp(leases: HeldLease[], why: string): void {
  const lost = leases.filter((lease) => held.giveUp(lease)).map(({ attemptId }) => attemptId);
  if (lost.length > 0) tell({ lost, why });
}

/**
 * The event loop ends attempts at their timeouts. While it is blocked this thread does: a handler keeps its lease
 * past its timeout no more than one that merely takes long.
 */
async function endOverdueWhileBlocked(): Promise<void> {
  if (!loop.look()) return;
  const now = LoopClock.now();
  const leases = held.all().filter(({ endsAt }) => endsAt !== undefined && endsAt <= now);
  if (leases.length === 0) return;
  const overdue = leases.map(({ jobId, attemptId, retryDelaySeconds }) => {
    return {
      lease: { jobId, attemptId, attemptNo: 0 },
      outcome: timedOutFromOutside(retryDelaySeconds),
    };
  });
  const won = await settle(db, overdue);
  for (const lease of leases) held.giveUp(lease);
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
  if ("page" in command) held.addPage(command.page);
  else if ("draining" in command) {
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
