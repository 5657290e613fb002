import type { Child } from "../children.ts";
import type { Run, Workload } from "../run.ts";
import { sleep } from "../servers/system.ts";
import type { Contestant, Measurement } from "../types.ts";
import { fill, readyWorkers, total, untilCount } from "./draining.ts";

const RATE = 1000;
const SAY_EVERY_MS = 30_000;

export const snapshot: Workload = {
  name: "snapshot",
  title: "A steady rate while a snapshot is held open",
  about:
    `${RATE} jobs/s for a time, once free and once with a REPEATABLE READ transaction open from the start, so that ` +
    "nothing dead can be vacuumed; with --quick 10,000 jobs pass first, so that a short run has dead rows too",
  excludes: (contestant: Contestant) => {
    if (!contestant.openQueue) return "";
    return contestant.store === "postgres" ? undefined : "no PostgreSQL, no snapshots";
  },
  rounds: () => 1,
  async run(run) {
    const free = await steady(run, false);
    run.say(
      `free: ${(free.share * 100).toFixed(1)} % of the rate, p50 ${free.p50.toFixed(1)}, p99 ${free.p99.toFixed(1)} ms`,
    );
    const held = await steady(run, true);
    const figure = (
      metric: string,
      unit: string,
      better: "higher" | "lower",
      value: number,
    ): Measurement => ({
      metric,
      unit,
      better,
      value,
    });
    return [
      figure("throughput free", "% of the rate", "higher", free.share * 100),
      figure("throughput held", "% of the rate", "higher", held.share * 100),
      figure("pickup p50 free", "ms", "lower", free.p50),
      figure("pickup p50 held", "ms", "lower", held.p50),
      figure("pickup p99 free", "ms", "lower", free.p99),
      figure("pickup p99 held", "ms", "lower", held.p99),
    ];
  },
};

async function steady(run: Run, hold: boolean): Promise<{ share: number; p50: number; p99: number }> {
  const place = await run.freshPlace();
  const seconds = run.seconds(300, 4);
  const before = run.options.quick ? run.jobs(10_000, 10_000) : 0;
  await fill(run, place, { jobs: before });
  await run.settle(place);
  const holder = await run.client(place);
  if (hold) await holder.query("begin isolation level repeatable read; select count(*) from pg_class");

  const [worker] = await readyWorkers(run, place, 1, { mode: "latency" });
  if (!worker) throw new Error("no worker");
  worker.send("go");
  await untilCount(run, [worker], "done", before);
  const producer = run.spawn("produce", { rate: RATE, seconds }, place);
  const saying = setInterval(() => saySoFar(run, worker, hold, before), SAY_EVERY_MS);
  await producer.receive("produced", (seconds + 120) * 1000).finally(() => clearInterval(saying));
  // A second for what is on the way; whatever comes later has not kept the rate.
  await sleep(1000);
  const share = (total([worker], "done") - before) / (RATE * seconds);
  worker.send("stop");
  const { latency } = await worker.receive("stopped", 300_000);
  if (hold) await holder.query("rollback");
  return { share, p50: latency.p50, p99: latency.p99 };
}

function saySoFar(run: Run, worker: Child<"work">, hold: boolean, before: number): void {
  const latency = worker.latest("latency");
  const pickup = latency ? `; of late p50 ${latency.p50.toFixed(1)}, p99 ${latency.p99.toFixed(1)} ms` : "";
  run.say(`${hold ? "held" : "free"}: ${total([worker], "done") - before} jobs so far${pickup}`);
}
