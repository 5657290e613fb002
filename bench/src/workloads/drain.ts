import type { Run, Workload } from "../run.ts";
import type { Measurement } from "../types.ts";
import { fill, notAQueue, timeDrain } from "./draining.ts";

export const drain: Workload = {
  name: "drain",
  title: "Drain trivial jobs",
  about:
    "jobs enqueued in bulk beforehand; from starting the worker processes until the store says all have finished; " +
    "the handler returns {ok, n}",
  excludes: notAQueue,
  rounds: (quick) => (quick ? 2 : 3),
  run: (run) => drainOnce(run, run.jobs(200_000, 10_000), 0),
};

export async function drainOnce(run: Run, jobs: number, blobBytes: number): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (const processes of [1, 2]) {
    const place = await run.freshPlace();
    await fill(run, place, { jobs, blobBytes });
    const seconds = await timeDrain(run, place, jobs, processes, blobBytes);
    const metric = processes === 1 ? "1 process" : `${processes} processes`;
    measurements.push({ metric, unit: "jobs/s", better: "higher", value: jobs / seconds });
  }
  return measurements;
}
