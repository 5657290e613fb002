import type { Run, Workload } from "../run.ts";
import type { Measurement, Place } from "../types.ts";
import { fill, readyWorkers, timeDrain, untilCount } from "./draining.ts";

/** Jobs that are run with the backlog beside them; what they take is the cost of claiming and settling. */
const MEASURED = 10_000;
const KINDS = ["waiting", "future", "finished"] as const;
type Kind = (typeof KINDS)[number];

export const backlog: Workload = {
  name: "backlog",
  title: "Cost of a job beside a backlog",
  about: `µs per job for ${MEASURED} jobs while many others wait, are due tomorrow, or have finished`,
  // The goal is about our own growth; a peer takes part when asked for by name.
  excludes: (contestant, options) =>
    contestant.openQueue && (contestant.side === "ours" || options.named) ? undefined : "",
  rounds: () => 1,
  async run(run) {
    const sizes = run.options.jobs
      ? [1000, run.options.jobs]
      : run.options.quick
        ? [1000, 20_000]
        : [1000, 1_000_000, 10_000_000];
    const measurements: Measurement[] = [];
    for (const kind of KINDS) {
      for (const rows of sizes) {
        const value = await costBeside(run, kind, rows);
        const metric = `${kind} ${rows.toLocaleString("en")}`;
        measurements.push(run.tell({ metric, unit: "µs/job", better: "lower", value }));
      }
    }
    return measurements;
  },
};

async function costBeside(run: Run, kind: Kind, rows: number): Promise<number> {
  const place = await run.freshPlace();
  if (kind === "finished") {
    await fill(run, place, { jobs: rows });
    await timeDrain(run, place, rows, 1);
  }
  if (kind === "future") await fill(run, place, { jobs: rows, delaySeconds: 86_400 });
  // 'waiting' has them behind the measured ones in the same queue: a claim takes the oldest of all.
  await fill(run, place, { jobs: MEASURED + (kind === "waiting" ? rows : 0) });
  return await timeFirst(run, place);
}

async function timeFirst(run: Run, place: Place): Promise<number> {
  const workers = await readyWorkers(run, place, 1, { mode: "throughput" });
  await run.settle(place);
  const began = performance.now();
  for (const worker of workers) worker.send("go");
  await untilCount(run, workers, "done", MEASURED, 300_000);
  const took = performance.now() - began;
  await Promise.all(workers.map((worker) => worker.kill()));
  return (took * 1000) / MEASURED;
}
