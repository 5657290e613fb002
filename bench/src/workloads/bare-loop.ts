import type { Workload } from "../run.ts";
import { fill, timeDrain } from "./draining.ts";

export const bareLoop: Workload = {
  name: "bare-loop",
  title: "The whole worker against the same SQL in a bare loop",
  about:
    "ours only: what scheduling, leases, validation and bookkeeping in the process cost beside the statements; the loop " +
    "claims 1,000 jobs while it settles the last 1,000, over two connections as the same restricted role",
  excludes: ({ name }) => (name === "oracle-worker" ? undefined : ""),
  rounds: (quick) => (quick ? 1 : 3),
  async run(run) {
    const jobs = run.jobs(100_000, 20_000);
    const bare = await run.freshPlace();
    await fill(run, bare, { jobs });
    const loop = run.spawn("bare-loop", { jobs }, bare);
    await loop.receive("ready");
    await run.settle(bare);
    loop.send("go");
    const { seconds } = await loop.receive("ran", 600_000);
    const whole = await run.freshPlace();
    await fill(run, whole, { jobs });
    const bareRate = jobs / seconds;
    const wholeRate = jobs / (await timeDrain(run, whole, jobs, 1));
    return [
      { metric: "bare loop", unit: "jobs/s", better: "higher", value: bareRate },
      { metric: "whole worker", unit: "jobs/s", better: "higher", value: wholeRate },
      { metric: "whole / bare", unit: "×", better: "higher", value: wholeRate / bareRate },
    ];
  },
};
