import type { Run, Workload } from "../run.ts";
import type { Measurement } from "../types.ts";
import { fill, untilCount } from "./draining.ts";
import { superviseAndKill } from "./supervised.ts";

/** Longer than any recovery that is measured, so that the job is running when its worker is killed. */
const JOB_MS = 300_000;
const GIVE_UP_MS = 180_000;
const METRIC = "runs again after";

export const recovery: Workload = {
  name: "recovery",
  title: "Seconds until a job runs again after SIGKILL of its worker",
  about:
    "default settings, no supervisor, a second worker process stands by; ours also under `oracle-worker work`, whose " +
    "supervisor starts the next process; where the documented default is hours or " +
    "never, the documentation's word stands instead of a measurement",
  excludes: (contestant) => (contestant.recovery ? undefined : ""),
  rounds: () => 1,
  ratios: false,
  async run(run) {
    const { recovery: about } = run.contestant;
    if (!about) return [];
    // Waiting out a default of a minute has no place in a quick run; ours is asked for with a short lease there.
    if (about.measure && (!run.options.quick || run.contestant.side === "ours")) {
      const unsupervised = await measure(run);
      run.tell(unsupervised);
      if (run.contestant.side !== "ours") return [unsupervised];
      return [unsupervised, figure(`${METRIC}, supervised`, await superviseAndKill(run), "measured")];
    }
    const seconds = about.documentedSeconds ?? Number.POSITIVE_INFINITY;
    return [{ ...figure(METRIC, seconds, about.documented), measured: false }];
  },
};

async function measure(run: Run): Promise<Measurement> {
  const place = await run.freshPlace();
  await fill(run, place, { jobs: 1 });
  const quickLease = run.options.quick && run.contestant.side === "ours";
  const env = quickLease ? { LEASE_SECONDS: "5" } : {};
  const params = { mode: "latency" as const, sleepMs: JOB_MS };
  const doomed = run.spawn("work", params, place, env);
  const heir = run.spawn("work", params, place, env);
  await Promise.all([doomed.receive("ready"), heir.receive("ready")]);
  doomed.send("go");
  await untilCount(run, [doomed], "started", 1, 30_000);
  heir.send("go");
  await doomed.kill();
  const began = performance.now();
  await untilCount(run, [heir], "started", 1, GIVE_UP_MS);
  const seconds = (performance.now() - began) / 1000;
  // A shortened lease is no default: it must not stand in one row with the others' defaults.
  return figure(quickLease ? `${METRIC}, lease cut to 5 s` : METRIC, seconds, "measured");
}

function figure(metric: string, value: number, note: string): Measurement {
  return { metric, unit: "s", better: "lower", value, note };
}
