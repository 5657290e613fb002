import { defineJob, type Job } from "oracle-worker";
import { z } from "zod";
import { type TestDatabase, until } from "./oracle.js";

type Options = Parameters<typeof defineJob>[0];
type Handler = (context: Parameters<NonNullable<Options["run"]>>[0]) => unknown;

let number = 0;

export interface Runner {
  id: string;
  /** Waits until the job has ended or is held. */
  rested(): Promise<Job>;
  stop(): Promise<void>;
}

/** Submits one job of a handler, in a queue of its own, to a worker of its own. */
export async function startHandler(
  db: TestDatabase,
  run: Handler,
  options: Partial<Options> & { maxAttempts?: number; leaseSeconds?: number } = {},
): Promise<Runner> {
  const { maxAttempts = 5, leaseSeconds = 60, ...rest } = options;
  const type = `handler-${number++}`;
  const job = defineJob({
    type,
    input: z.any(),
    output: z.any(),
    backoff: { kind: "fixed", baseSeconds: 0.02 },
    ...rest,
    run: run as never,
  });
  const worker = await db.worker({ jobs: [job], queues: [type], leaseSeconds });
  const { id } = await db.oracle.enqueue(type, {}, { queue: type, maxAttempts });
  return {
    id,
    rested: () => rested(db, id),
    stop: () => worker.stop(),
  };
}

export function rested(db: TestDatabase, id: string): Promise<Job> {
  return until(`job ${id} to end or to be held`, async () => {
    const job = await db.oracle.get(id);
    return job && (job.completedAt !== null || job.holdReason !== null) && job;
  });
}

/** Something to wait for that a test opens when it likes. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
