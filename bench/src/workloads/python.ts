import type { Workload } from "../run.ts";

export const python: Workload = {
  name: "python",
  title: "Trivial Python jobs",
  about: "a Python function that returns at once; from starting one worker until all jobs have finished",
  excludes: (contestant) => (contestant.openPython ? undefined : ""),
  rounds: (quick) => (quick ? 1 : 3),
  async run(run) {
    const jobs = run.contestant.side === "ours" ? run.jobs(20_000, 10_000) : run.jobs(1000, 200);
    const child = run.spawn("python", { jobs }, await run.freshPlace());
    const { seconds } = await child.receive("ran", 600_000);
    return [{ metric: "python", unit: "jobs/s", better: "higher", value: jobs / seconds }];
  },
};
