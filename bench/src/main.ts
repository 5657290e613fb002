import { parseOptions, UsageError } from "./cli.ts";
import { contestants } from "./contestants/index.ts";
import { describeMachine } from "./report/machine.ts";
import { storeReport } from "./report/store.ts";
import { renderWorkload } from "./report/table.ts";
import { runWorkload, type WorkloadResult } from "./rounds.ts";
import { startPostgres } from "./servers/postgres.ts";
import { REDIS_MISSING, startRedis } from "./servers/redis.ts";
import { stopAll, stopOnSignals } from "./servers/stops.ts";
import type { Options } from "./types.ts";
import { workloads } from "./workloads/index.ts";

async function bench(options: Options): Promise<void> {
  const started = new Date();
  const taking = contestants.filter(({ name }) => options.contestants.includes(name));
  const servers = { postgres: await startPostgres(), redis: await startRedis() };
  if (!servers.redis) console.error(`bench: ${REDIS_MISSING}; its contestants are skipped`);
  const machine = describeMachine(servers);
  const results: WorkloadResult[] = [];
  for (const workload of workloads.filter(({ name }) => options.workloads.includes(name))) {
    console.error(`${workload.name}: ${workload.title}`);
    const result = await runWorkload(workload, taking, options, servers);
    results.push(result);
    storeReport(started, machine, results, taking, options);
    console.log(`\n${renderWorkload(result, taking)}\n`);
  }
  const { folder } = storeReport(started, machine, results, taking, options);
  const minutes = ((Date.now() - started.getTime()) / 60_000).toFixed(1);
  console.log(`${minutes} minutes. Table, figures and plots: ${folder}`);
}

try {
  const options = parseOptions(
    process.argv.slice(2),
    workloads.map(({ name }) => name),
    contestants.map(({ name }) => name),
  );
  if (options !== "help") {
    stopOnSignals();
    await bench(options).finally(stopAll);
  }
  process.exit(0);
} catch (error) {
  if (!(error instanceof UsageError)) console.error(error);
  else console.error(`bench: ${error.message} (--help lists all)`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
