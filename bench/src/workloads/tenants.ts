import type { Workload } from "../run.ts";
import type { Measurement } from "../types.ts";
import { fill, timeDrain } from "./draining.ts";

const MANY = 1000;

export const tenants: Workload = {
  name: "tenants",
  title: "Drain trivial jobs of many tenants",
  about:
    `the same number of jobs, once of one tenant and once spread evenly over ${MANY} who take turns; one worker ` +
    "process; the share is the second rate in terms of the first",
  excludes: (contestant) => (contestant.sharesByTenant ? undefined : "no turns between tenants"),
  rounds: (quick) => (quick ? 1 : 5),
  async run(run) {
    const jobs = run.jobs(100_000, 20_000);
    const rate = async (of: number): Promise<number> => {
      const place = await run.freshPlace();
      await fill(run, place, { jobs, tenants: of });
      return jobs / (await timeDrain(run, place, jobs, 1));
    };
    const one = await rate(1);
    const many = await rate(MANY);
    const figure = (metric: string, unit: string, value: number): Measurement => ({
      metric,
      unit,
      better: "higher",
      value,
    });
    return [
      figure("1 tenant", "jobs/s", one),
      figure(`${MANY} tenants`, "jobs/s", many),
      figure("share", "×", many / one),
    ];
  },
};
