import type { Run, Workload } from "../run.ts";
import type { Measurement, Place } from "../types.ts";
import { fill, readyWorkers, timeDrain, total, untilCount } from "./draining.ts";

/** Jobs that are run with the backlog beside them, of which the last are timed: the start of a worker is no claim's cost. */
const JOBS = { full: { all: 60_000, timed: 50_000 }, quick: { all: 15_000, timed: 10_000 } };
const KINDS = ["waiting", "future", "finished"] as const;
type Kind = (typeof KINDS)[number];

export const backlog: Workload = {
  name: "backlog",
  title: "Cost of a job beside a backlog",
  about:
    "µs per job while many others wait, are due tomorrow, or have finished, the start of the worker and its first " +
    `${(JOBS.full.all - JOBS.full.timed).toLocaleString("en")} jobs left out`,
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
  const jobs = run.options.quick ? JOBS.quick : JOBS.full;
  await fill(run, place, { jobs: jobs.all + (kind === "waiting" ? rows : 0) });
  return await timeFirst(run, place, jobs);
}

async function timeFirst(
  run: Run,
  place: Place,
  { all, timed }: { all: number; timed: number },
): Promise<number> {
  const workers = await readyWorkers(run, place, 1, { mode: "throughput" });
  await run.settle(place);
  for (const worker of workers) worker.send("go");
  await untilCount(run, workers, "done", all - timed, 300_000);
  const already = total(workers, "done");
  const began = performance.now();
  await untilCount(run, workers, "done", all, 300_000);
  const took = performance.now() - began;
  const done = total(workers, "done") - already;
  await Promise.all(workers.map((worker) => worker.kill()));
  return (took * 1000) / done;
}
