import type { Workload } from "../run.ts";
import type { Contestant, Measurement } from "../types.ts";
import { bytesIn } from "./bytes.ts";
import { fill, timeDrain } from "./draining.ts";

export const size: Workload = {
  name: "size",
  title: "Bytes per finished job",
  about:
    "WAL from enqueueing in bulk and draining, full-page images included; table (with TOAST) and index bytes of the " +
    "whole database right after, less those of the empty schema; no vacuum in between",
  excludes: (contestant: Contestant) => {
    if (!contestant.openQueue) return "";
    return contestant.store === "postgres" ? undefined : "no PostgreSQL, no WAL";
  },
  rounds: () => 1,
  async run(run) {
    const jobs = run.jobs(100_000, 10_000);
    const place = await run.freshPlace();
    await run.spawn("fill", { jobs: 0, install: true }, place).receive("filled");
    const client = await run.client(place);
    await client.query("checkpoint");
    const before = await bytesIn(client);
    await fill(run, place, { jobs });
    const enqueued = await bytesIn(client);
    await timeDrain(run, place, jobs, 1);
    const after = await bytesIn(client);
    const perJob = (metric: string, bytes: number): Measurement => ({
      metric,
      unit: "bytes/job",
      better: "lower",
      value: bytes / jobs,
    });
    return [
      perJob("WAL enqueue", enqueued.wal - before.wal),
      perJob("WAL drain", after.wal - enqueued.wal),
      perJob("table", after.table - before.table),
      perJob("index", after.index - before.index),
    ];
  },
};
