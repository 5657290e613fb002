import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CreateWorkerOptions, defineJob, type JobDefinition } from "oracle-worker";
import { z } from "zod";
import type { JsonValue } from "../../dist/core/json.js";
import type { ProcessOptions } from "../../dist/handlers/define.js";
import type { TestDatabase } from "./oracle.js";

export const program = (name: string) => fileURLToPath(new URL(`./handlers/${name}`, import.meta.url));

/** A job type that is a program of test/support/handlers. */
export function programJob(type: string, executable: [string, ...string[]], options: ProcessOptions = {}) {
  return defineJob({
    type,
    input: z.any(),
    output: z.any(),
    backoff: { kind: "fixed", baseSeconds: 0.01 },
    executable,
    ...options,
  });
}

export function newFile(): string {
  return join(mkdtempSync(join(tmpdir(), "oracle-worker-program-")), "pids");
}

let queueNumber = 0;

/** A worker in a queue of its own, and what it takes to run one job there to its end. */
export async function workerOf(
  db: TestDatabase,
  jobs: JobDefinition[],
  options: Partial<CreateWorkerOptions> = {},
) {
  const queue = `programs-${queueNumber++}`;
  const worker = await db.worker({ jobs, queues: [queue], ...options });
  const enqueue = (type: string, input: JsonValue, enqueueOptions = {}) =>
    db.oracle.enqueue(type, input, { queue, maxAttempts: 1, ...enqueueOptions });
  return {
    worker,
    enqueue,
    async run(type: string, input: JsonValue, enqueueOptions = {}) {
      const { id } = await enqueue(type, input, enqueueOptions);
      const job = await db.oracle.wait(id, { timeoutSeconds: 25 });
      return { ...job, result: (await db.oracle.result(id))?.payload };
    },
  };
}
