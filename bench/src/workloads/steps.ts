import type { Workload } from "../run.ts";

const STEPS = 10;
const AT_A_TIME = 50;

export const steps: Workload = {
  name: "steps",
  title: "Ten-step durable jobs, 50 at a time",
  about: "every step's result is durable before the next step starts; steps per second over whole jobs",
  excludes: (contestant) => (contestant.openSteps ? undefined : ""),
  rounds: (quick) => (quick ? 1 : 3),
  async run(run) {
    const jobs = run.jobs(1000, 200);
    const child = run.spawn("steps", { jobs, steps: STEPS, atATime: AT_A_TIME }, await run.freshPlace());
    const { seconds } = await child.receive("ran", 600_000);
    return [{ metric: "steps", unit: "steps/s", better: "higher", value: (jobs * STEPS) / seconds }];
  },
};
