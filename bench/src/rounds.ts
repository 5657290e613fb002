import { short } from "./report/ratios.ts";
import { Run, type Servers, type Workload } from "./run.ts";
import { haltIfStopping, stopAtEnd } from "./servers/stops.ts";
import { median } from "./stats.ts";
import type { Contestant, Options } from "./types.ts";

/** One metric of one contestant over all rounds. */
export interface Series {
  contestant: string;
  metric: string;
  unit: string;
  better: "higher" | "lower";
  samples: number[];
  median: number;
  min: number;
  max: number;
  note?: string;
  measured?: false;
}

export interface WorkloadResult {
  workload: string;
  title: string;
  about: string;
  rounds: number;
  ratios: boolean;
  series: Series[];
  /** Who took no part, or broke, and why. */
  absent: Array<{ contestant: string; why: string }>;
}

/** Every contestant once per round, each round starting with another one: a drifting machine hits all alike. */
export async function runWorkload(
  workload: Workload,
  contestants: Contestant[],
  options: Options,
  servers: Servers,
): Promise<WorkloadResult> {
  const rounds = options.rounds ?? workload.rounds(options.quick);
  const absent: WorkloadResult["absent"] = [];
  const taking: Contestant[] = [];
  for (const contestant of contestants) {
    const why = await reason(workload, contestant, options, servers);
    if (why === undefined) taking.push(contestant);
    else if (why !== "") absent.push({ contestant: contestant.name, why });
  }
  await servers.postgres.configure(workload.postgresSettings ?? {});

  const series = new Map<string, Series>();
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < taking.length; turn++) {
      const contestant = taking[(turn + round) % taking.length];
      if (!contestant || absent.some((other) => other.contestant === contestant.name)) continue;
      const failure = await runOnce(workload, contestant, options, servers, series, `${round + 1}/${rounds}`);
      if (failure) absent.push({ contestant: contestant.name, why: failure });
    }
  }
  return {
    workload: workload.name,
    title: workload.title,
    about: workload.about,
    rounds,
    ratios: workload.ratios ?? true,
    series: [...series.values()],
    absent,
  };
}

/** Why it takes no part, '' when that goes without saying, undefined when it does. */
async function reason(
  workload: Workload,
  contestant: Contestant,
  options: Options,
  servers: Servers,
): Promise<string | undefined> {
  if (contestant.only && !contestant.only.includes(workload.name)) return "";
  const { fullOnly = [] } = contestant;
  const onlyInFull = fullOnly === "all" || fullOnly.includes(workload.name);
  if (options.quick && onlyInFull && !options.named) return "only in a full run";
  const excluded = workload.excludes(contestant, options);
  if (excluded !== undefined) return excluded;
  if ((contestant.store === "redis" || contestant.usesRedis) && !servers.redis)
    return "redis-server is not installed";
  return contestant.unavailable?.();
}

async function runOnce(
  workload: Workload,
  contestant: Contestant,
  options: Options,
  servers: Servers,
  series: Map<string, Series>,
  round: string,
): Promise<string | undefined> {
  const run = new Run(contestant, options, servers, `${workload.name} ${round} ${contestant.name}`);
  const began = performance.now();
  const ended = stopAtEnd(`${contestant.name} in ${workload.name}`, () => run.end());
  try {
    const measurements = await workload.run(run);
    for (const { value, ...what } of measurements) {
      const key = `${what.metric} ${contestant.name}`;
      const known = series.get(key) ?? {
        contestant: contestant.name,
        ...what,
        samples: [],
        median: 0,
        min: 0,
        max: 0,
      };
      known.samples.push(value);
      Object.assign(known, spread(known.samples));
      series.set(key, known);
    }
    const said = measurements.map(({ metric, value, unit }) => `${metric} ${short(value)} ${unit}`);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    console.error(`  ${workload.name} ${round} ${contestant.name} (${took} s): ${said.join(", ")}`);
    return undefined;
  } catch (error) {
    await haltIfStopping();
    const why = error instanceof Error ? error.message : String(error);
    console.error(`  ${workload.name} ${round} ${contestant.name} failed: ${why}`);
    return `failed in round ${round}: ${why.split("\n")[0]}`;
  } finally {
    await run.end();
    ended();
  }
}

function spread(samples: number[]): { median: number; min: number; max: number } {
  return { median: median(samples), min: Math.min(...samples), max: Math.max(...samples) };
}
