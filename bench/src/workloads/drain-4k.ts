import type { Workload } from "../run.ts";
import { drainOnce } from "./drain.ts";
import { notAQueue } from "./draining.ts";

const BLOB_BYTES = 4096;

export const drain4k: Workload = {
  name: "drain-4k",
  title: "Drain jobs with 4 KB inputs and 4 KB results",
  about:
    "as drain, with 4 KB of text that hardly compresses in every input and every result (kept where results are)",
  excludes: notAQueue,
  rounds: (quick) => (quick ? 1 : 3),
  run: (run) => drainOnce(run, run.jobs(50_000, 3000), BLOB_BYTES),
};
