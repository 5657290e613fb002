import { connect, createWorker, defineJob } from "oracle-worker";
import { z } from "zod";

// A whole program in one file: its jobs must not run in a thread, which would start the program once more.

export const selfish = defineJob({
  type: "selfish",
  isolation: "thread",
  input: z.object({}),
  output: z.null(),
  run: () => null,
});

export async function main(databaseUrl: string) {
  const oracle = await connect({ databaseUrl });
  return { oracle, worker: await createWorker(oracle, { jobs: [selfish] }) };
}

if (process.env.ORACLE_WORKER_ISOLATED) await main("postgresql://127.0.0.1:1/none");
