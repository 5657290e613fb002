import { ask } from "../contestants/support.ts";
import type { Run, Workload } from "../run.ts";
import type { Measurement, Place } from "../types.ts";
import { bytesIn } from "./bytes.ts";
import { fill, readyWorkers, untilCount } from "./draining.ts";

const STAGES = 10;

export const retention: Workload = {
  name: "retention",
  title: "Bytes of the database while finished jobs are removed",
  about:
    `one worker that removes finished jobs by itself (RETENTION); jobs in ${STAGES} portions, each drained before the ` +
    "next; table and index bytes after the second and the last, the most after any, and the jobs left at the end",
  // Which of a peer's own clean-ups compares is a matter of taste; the goal is that ours is bounded.
  excludes: ({ name }, { quick, named }) => {
    if (name !== "oracle-worker") return "";
    return quick && !named ? "only in a full run: jobs must grow old first" : undefined;
  },
  rounds: () => 1,
  ratios: false,
  async run(run) {
    const jobs = run.jobs(5_000_000, 20_000);
    const keepSeconds = run.options.quick ? 5 : 30;
    const place = await run.freshPlace();
    await run.spawn("fill", { jobs: 0, install: true }, place).receive("filled");
    const { sizes, left } = await passThrough(run, place, jobs, keepSeconds);
    const figure = (when: string, megabytes: number): Measurement => ({
      metric: `after ${when}`,
      unit: "MB",
      better: "lower",
      value: megabytes,
      note: `kept for ${keepSeconds} s`,
    });
    return [
      figure(`${((jobs * 2) / STAGES).toLocaleString("en")} jobs`, sizes[1] ?? Number.NaN),
      figure(`${jobs.toLocaleString("en")} jobs`, sizes.at(-1) ?? Number.NaN),
      figure("any portion, at most", Math.max(...sizes)),
      { ...figure("all: jobs left", left), unit: "jobs" },
    ];
  },
};

/** Megabytes of tables and indexes after each portion, and the jobs that are left at the end. */
async function passThrough(
  run: Run,
  place: Place,
  jobs: number,
  keepSeconds: number,
): Promise<{ sizes: number[]; left: number }> {
  const client = await run.client(place);
  const env = { RETENTION: `${keepSeconds}s` };
  const workers = await readyWorkers(run, place, 1, { mode: "throughput" }, env);
  for (const worker of workers) worker.send("go");
  const sizes: number[] = [];
  let left = 0;
  for (let stage = 1; stage <= STAGES; stage++) {
    const soFar = Math.round((jobs * stage) / STAGES);
    await fill(run, place, { jobs: soFar - Math.round((jobs * (stage - 1)) / STAGES) });
    await untilCount(run, workers, "done", soFar);
    const { table, index, wal } = await bytesIn(client);
    sizes.push((table + index) / 1e6);
    const megabytes = [table, index, wal].map((bytes) => (bytes / 1e6).toFixed(0));
    left = await ask<number>(client, "select count(*)::int as value from oracle.jobs");
    run.say(
      `${soFar} jobs: ${left} left, table ${megabytes[0]}, index ${megabytes[1]} MB; WAL so far ${megabytes[2]} MB`,
    );
  }
  return { sizes, left };
}
