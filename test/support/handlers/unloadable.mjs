import { defineJob } from "oracle-worker";
import { z } from "zod";

// Loads in the worker, but not in a process of its own.
if (process.env.ORACLE_WORKER_ISOLATED) throw new Error("no such model");
export const unloadable = defineJob({
  type: "unloadable",
  isolation: "process",
  input: z.any(),
  output: z.any(),
  run: () => null,
});
