import { cpuShare } from "../report/machine.ts";
import type { Run, Workload } from "../run.ts";
import { ascending, quantile } from "../stats.ts";
import type { Measurement } from "../types.ts";
import { notAQueue } from "./draining.ts";

/**
 * The load beside the probes, the same for all so that the figures compare; meant to be half of what two cores can
 * enqueue and drain at once. Whether it is shows in the busy share of the machine, which the table prints.
 */
const LOAD_RATE = 3000;
const GAP_MS = 20;

interface Plan {
  samples: number;
  maxSeconds: number;
}

const fromEnqueueToHandler =
  "from just before the enqueue call to the first line of the handler, one process, one job at a time; " +
  "bare-pg is the floor (insert + NOTIFY → LISTEN → claim)";

export const pickup: Workload = {
  name: "pickup",
  title: "Pickup latency of one job on an idle queue",
  about: fromEnqueueToHandler,
  excludes: notAQueue,
  rounds: (quick) => (quick ? 1 : 3),
  run: (run) => idle(run, planOf(run)),
};

/** Apart from the idle one: a machine too busy for this load still gives that figure. */
export const pickupLoaded: Workload = {
  name: "pickup-loaded",
  title: "Pickup latency of one job under load",
  about: `${fromEnqueueToHandler}; another process enqueues ${LOAD_RATE} jobs/s for the same worker`,
  excludes: notAQueue,
  rounds: (quick) => (quick ? 1 : 3),
  run: (run) => loaded(run, planOf(run)),
};

function planOf({ options }: Run): Plan {
  return options.quick ? { samples: 100, maxSeconds: 5 } : { samples: 1000, maxSeconds: 120 };
}

async function idle(run: Run, plan: Plan): Promise<Measurement[]> {
  const probe = run.spawn("pickup", { ...plan, gapMs: GAP_MS, install: true }, await run.freshPlace());
  return figures("idle", await probe.receive("latencies", 300_000));
}

async function loaded(run: Run, plan: Plan): Promise<Measurement[]> {
  const place = await run.freshPlace();
  // Longer than all probes may take together; the load ends with the run.
  const seconds = plan.maxSeconds + 60;
  await run.spawn("fill", { jobs: 0, install: true }, place).receive("filled");
  const rate = LOAD_RATE * (run.contestant.loadShare ?? 1);
  run.spawn("produce", { rate, seconds }, place);
  const cpu = cpuShare();
  const probe = run.spawn("pickup", { ...plan, gapMs: GAP_MS, install: false }, place);
  const latencies = await probe.receive("latencies", seconds * 1000);
  const note = `${Math.round(rate)} jobs/s beside, machine ${Math.round(cpu() * 100)} % busy, ${latencies.length} samples`;
  return figures("under load", latencies).map((figure) => ({ ...figure, note }));
}

function figures(name: string, latencies: number[]): Measurement[] {
  if (latencies.length === 0) throw new Error(`${name}: no probe was picked up in time`);
  const sorted = ascending(latencies);
  // A p99.9 of fewer samples would be their worst one under another name.
  const quantiles = latencies.length >= 1000 ? [0.5, 0.99, 0.999] : [0.5, 0.99];
  return quantiles.map((p) => ({
    metric: `${name} p${p * 100}`,
    unit: "ms",
    better: "lower",
    value: quantile(sorted, p),
  }));
}
