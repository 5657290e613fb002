import type { Run, Workload } from "../run.ts";
import type { Measurement } from "../types.ts";
import { fill, timeDrain } from "./draining.ts";

/**
 * The seam for our own SQL without our worker: claim and settle statements straight from src/store, driven by a
 * loop over two connections with the handler inlined. Give it the URL of a filled database; it returns the seconds
 * until all jobs have SUCCEEDED. Undefined until someone fills it in.
 */
type BareLoop = (databaseUrl: string, jobs: number) => Promise<number>;
const driveBareLoop: BareLoop | undefined = undefined;

export const bareLoop: Workload = {
  name: "bare-loop",
  title: "The whole worker against the same SQL in a bare loop",
  about:
    "ours only: what scheduling, leases, validation and bookkeeping in the process cost beside the statements",
  excludes: (contestant) => {
    if (contestant.side !== "ours") return "";
    return driveBareLoop
      ? undefined
      : "the bare loop is not written yet: driveBareLoop in workloads/bare-loop.ts";
  },
  rounds: (quick) => (quick ? 1 : 3),
  run: (run) => compare(run, driveBareLoop),
};

async function compare(run: Run, loop: BareLoop | undefined): Promise<Measurement[]> {
  if (!loop) return [];
  const jobs = run.jobs(100_000, 20_000);
  const bare = await run.freshPlace();
  await fill(run, bare, { jobs });
  await run.settle(bare);
  const bareRate = jobs / (await loop(bare.postgresUrl, jobs));
  const whole = await run.freshPlace();
  await fill(run, whole, { jobs });
  const wholeRate = jobs / (await timeDrain(run, whole, jobs, 1));
  return [
    { metric: "bare loop", unit: "jobs/s", better: "higher", value: bareRate },
    { metric: "whole worker", unit: "jobs/s", better: "higher", value: wholeRate },
    { metric: "whole / bare", unit: "ratio", better: "higher", value: wholeRate / bareRate },
  ];
}
