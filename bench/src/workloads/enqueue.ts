import type { Workload } from "../run.ts";
import type { Measurement } from "../types.ts";
import { notAQueue } from "./draining.ts";

const LABELS: Record<string, string> = {
  bulk: "bulk",
  single: "single, one caller",
  single16: "single, 16 callers",
  singleInTx: "single in caller's transaction",
  bulkInTx: "bulk in caller's transaction",
};

export const enqueue: Workload = {
  name: "enqueue",
  title: "Enqueue",
  about:
    "one process, no worker; the transactions insert a row of the application, enqueue (one job, or 1,000) and " +
    "commit; absent where a peer cannot enqueue in a caller's transaction",
  excludes: notAQueue,
  rounds: (quick) => (quick ? 1 : 3),
  async run(run) {
    const place = await run.freshPlace();
    const bulk = run.jobs(100_000, 20_000);
    const single = run.options.quick ? 500 : 3000;
    const child = run.spawn(
      "enqueue",
      { bulk, single, inTransaction: single, bulkInTransaction: bulk, perTransaction: 1000 },
      place,
    );
    const rates = await child.receive("rates", 600_000);
    return Object.entries(rates).map(
      ([name, value]): Measurement => ({
        metric: LABELS[name] ?? name,
        unit: "jobs/s",
        better: "higher",
        value,
      }),
    );
  },
};
