import type { LatencySummary } from "../stats.ts";
import type { Contestant, Place, WorkerMode } from "../types.ts";
import { bareLoopRole } from "./bare-loop.ts";
import { enqueueRole } from "./enqueue.ts";
import { fillRole } from "./fill.ts";
import { pickupRole } from "./pickup.ts";
import { produceRole } from "./produce.ts";
import { pythonRole } from "./python.ts";
import { stepsRole } from "./steps.ts";
import { workRole } from "./work.ts";

/** What a contestant process can be asked to do, and what it is told. */
export interface RoleParams {
  fill: { jobs: number; blobBytes?: number; delaySeconds?: number; tenants?: number; install: boolean };
  work: { mode: WorkerMode; concurrency?: number; blobBytes?: number; sleepMs?: number };
  enqueue: {
    bulk: number;
    single: number;
    inTransaction: number;
    bulkInTransaction: number;
    perTransaction: number;
  };
  pickup: { samples: number; gapMs: number; maxSeconds: number; install: boolean };
  produce: { rate: number; seconds: number };
  steps: { jobs: number; steps: number; atATime: number };
  python: { jobs: number };
  "bare-loop": { jobs: number };
}

export type RoleName = keyof RoleParams;

/** The messages each role sends to the driver. */
export interface RoleMessages {
  fill: { filled: { seconds: number } };
  work: {
    ready: null;
    progress: { started: number; done: number };
    /** Of the jobs since the last such message. */
    latency: LatencySummary;
    drained: null;
    stopped: { finished: number | null; latency: LatencySummary };
  };
  enqueue: { rates: Record<string, number> };
  pickup: { latencies: number[] };
  produce: { produced: { jobs: number; seconds: number } };
  steps: { ran: { seconds: number } };
  python: { ran: { seconds: number } };
  "bare-loop": { ready: null; ran: { seconds: number } };
}

/** The child's end of the channel. */
export interface Io {
  send(type: string, data?: unknown): void;
  receive(type: string): Promise<unknown>;
}

type Play<R extends RoleName> = (
  contestant: Contestant,
  place: Place,
  params: RoleParams[R],
  io: Io,
) => Promise<void>;

const roles: { [R in RoleName]: Play<R> } = {
  fill: fillRole,
  work: workRole,
  enqueue: enqueueRole,
  pickup: pickupRole,
  produce: produceRole,
  steps: stepsRole,
  python: pythonRole,
  "bare-loop": bareLoopRole,
};

export async function playRole<R extends RoleName>(
  role: R,
  contestant: Contestant,
  place: Place,
  params: RoleParams[R],
  io: Io,
): Promise<void> {
  await roles[role](contestant, place, params, io);
  // Some libraries leave timers or sockets behind; the role is over all the same.
  process.disconnect?.();
  process.exit(0);
}
