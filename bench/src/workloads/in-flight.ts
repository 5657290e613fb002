import { readFileSync } from "node:fs";
import type pg from "pg";
import type { Run, Workload } from "../run.ts";
import { sleep } from "../servers/system.ts";
import { fill, readyWorkers, total, untilCount } from "./draining.ts";

const IN_FLIGHT = 10_000;

export const inFlight: Workload = {
  name: "in-flight",
  title: `${IN_FLIGHT.toLocaleString("en")} sleeping jobs in one process`,
  about:
    "every job sleeps until long after all have started; memory and statements while all are in flight " +
    "(pg_stat_statements, top level), and how many were started a second time",
  excludes: (contestant, { quick, named }) => {
    if (!contestant.openQueue) return "";
    // Each takes a quarter of a minute, most of it asleep.
    if (quick && !named && contestant.side !== "ours") return "only in a full run";
    return contestant.store === "postgres" ? undefined : "no PostgreSQL, no statements to count";
  },
  rounds: () => 1,
  ratios: false,
  postgresSettings: { shared_preload_libraries: "pg_stat_statements" },
  async run(run) {
    const seconds = run.seconds(150, 12);
    const place = await run.freshPlace();
    await fill(run, place, { jobs: IN_FLIGHT });
    await run.settle(place);
    const workers = await readyWorkers(run, place, 1, {
      mode: "in-flight",
      concurrency: IN_FLIGHT,
      sleepMs: seconds * 1000,
    });
    const [worker] = workers;
    if (!worker) throw new Error("no worker");
    const calls = await statementCounter(run, place.postgresUrl);
    worker.send("go");
    await untilCount(run, workers, "started", IN_FLIGHT, Math.max(120_000, seconds * 1000));
    const startedAt = performance.now();
    const callsBefore = await calls();
    // Until shortly before the first job ends: nothing but keeping 10,000 jobs alive happens in between.
    await sleep(Math.max(2000, seconds * 800));
    const statements = (await calls()) - callsBefore;
    const window = (performance.now() - startedAt) / 1000;
    const memory = peakMegabytes(worker.pid);
    await untilCount(run, workers, "done", IN_FLIGHT, (seconds + 120) * 1000);
    const again = total(workers, "started") - IN_FLIGHT;
    return [
      { metric: "peak memory", unit: "MB", better: "lower", value: memory },
      { metric: "statements", unit: "per s", better: "lower", value: statements / window },
      { metric: "started again", unit: "jobs", better: "lower", value: again },
    ];
  },
};

async function statementCounter(run: Run, url: string): Promise<() => Promise<number>> {
  const database = new URL(url).pathname.slice(1);
  const admin: pg.Client = run.admin();
  await admin.query("create extension if not exists pg_stat_statements");
  return async () => {
    const { rows } = await admin.query<{ calls: number }>(
      `select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements s
       join pg_database d on d.oid = s.dbid where d.datname = $1`,
      [database],
    );
    return rows[0]?.calls ?? 0;
  };
}

/** The most it has ever had resident. */
function peakMegabytes(pid: number): number {
  const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}
