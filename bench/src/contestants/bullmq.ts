import type { JobsOptions } from "bullmq";
import type { Handler, JobInput, QueueSession, RunningWorker, WorkerOptions } from "../types.ts";
import { inPortions, pollUntil } from "./support.ts";

export const QUEUE = "bench";

/** The part of BullMQ that is the same on Redis and on PostgreSQL; each gives its own constructors. */
export interface BullQueue {
  add(name: string, data: JobInput, options?: JobsOptions): Promise<unknown>;
  addBulk(jobs: Array<{ name: string; data: JobInput; opts?: JobsOptions }>): Promise<unknown>;
  getJobCounts(...types: Array<"wait" | "active" | "prioritized">): Promise<Record<string, number>>;
  getCompletedCount(): Promise<number>;
  close(): Promise<void>;
}

export interface BullWorker {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

export interface BullParts {
  queue: BullQueue;
  bulk: number;
  concurrency: number;
  install(): Promise<void>;
  makeWorker(handler: Handler, concurrency: number): BullWorker;
  close(): Promise<void>;
}

export function bullSession(parts: BullParts): QueueSession {
  const { queue } = parts;
  return {
    install: () => parts.install(),
    enqueue: async (input) => void (await queue.add("job", input)),
    enqueueMany: (inputs, options) => {
      const opts: JobsOptions = options?.delaySeconds ? { delay: options.delaySeconds * 1000 } : {};
      return inPortions(inputs, parts.bulk, (portion) =>
        queue.addBulk(portion.map((data) => ({ name: "job", data, opts }))),
      );
    },
    startWorker: (handler, options) => startWorker(parts, handler, options),
    waiting: () => unfinished(queue),
    finished: () => queue.getCompletedCount(),
    close: async () => {
      await queue.close();
      await parts.close();
    },
  };
}

async function startWorker(
  parts: BullParts,
  handler: Handler,
  options: WorkerOptions,
): Promise<RunningWorker> {
  const worker = parts.makeWorker(handler, options.concurrency ?? parts.concurrency);
  await worker.waitUntilReady();
  return {
    drained: () => pollUntil(async () => (await unfinished(parts.queue)) === 0),
    stop: () => worker.close(),
  };
}

async function unfinished(queue: BullQueue): Promise<number> {
  const counts = await queue.getJobCounts("wait", "active", "prioritized");
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
