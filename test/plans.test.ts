import { describe, expect, it } from "vitest";
import type { Lease, Outcome } from "../dist/core/job.js";
import { acquire } from "../dist/store/acquire.js";
import { findArtifact, findReferences, listArtifacts, recordArtifact } from "../dist/store/artifact.js";
import { Database } from "../dist/store/database.js";
import { freeDeadWorker } from "../dist/store/free-worker.js";
import { getLogs } from "../dist/store/logs.js";
import { promote } from "../dist/store/promote.js";
import { reclaim } from "../dist/store/reclaim.js";
import { renew } from "../dist/store/renew.js";
import { report } from "../dist/store/report.js";
import { settle } from "../dist/store/settle.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();

const success: Outcome = { kind: "succeeded", resultText: "1", contentHash: "h" };

/** One of everything a worker does. */
async function runHotStatements(store: Database, queue: string): Promise<void> {
  await db.oracle.enqueueMany(
    "any",
    Array.from({ length: 20 }, (_, n) => ({ n })),
    { queue },
  );
  await db.oracle.enqueue("any", {}, { queue, key: queue });
  const { leases } = await claimFrom(store, queue, { workerId: queue });
  const [first, second, third, fourth] = leases as [Lease, Lease, Lease, Lease];
  await renew(store, leases, 60);
  const said = { seq: 1, level: "info" as const, message: "m", fields: undefined, madeAt: performance.now() };
  const progress = { text: "{}", madeAt: performance.now() };
  await report(
    store,
    leases.map((lease) => ({ lease, progress, lines: [said] })),
  );
  const about = { artifactId: first.jobId, type: "json", name: "n", mediaType: "a/b", size: 1 } as const;
  await recordArtifact(store, first, { ...about, sha256: "0".repeat(64), payload: "1" });
  await recordArtifact(store, second, { ...about, artifactId: second.jobId, sha256: "0".repeat(64) });
  await getLogs(store, first.jobId, {});
  await listArtifacts(store, first.jobId);
  await findArtifact(store, first.jobId);
  await findReferences(store, [`x/${"0".repeat(64)}.y`]);
  const error = { code: "HANDLER_ERROR" as const, message: "m", retryable: true };
  await settle(store, [
    { lease: first, outcome: success },
    { lease: second, outcome: { kind: "retryable", error, delaySeconds: 0 } },
  ]);
  // Again, as after a lost reply.
  await settle(store, [{ lease: first, outcome: success }]);
  await expireLease(db, third.jobId);
  await reclaim(store, { workerId: "w", queues: [queue], leaseSeconds: 60, versions: {}, limit: 5 });
  await promote(store);
  const waiting = await db.oracle.enqueue("any", {}, { queue });
  await acquire(store, { jobId: waiting.id, workerId: "w", leaseSeconds: 60 });
  await freeDeadWorker(store, queue, [fourth.jobId], "WORKER_CRASHED");
}

/** How often each of the big tables was read from end to end, once the server has counted `after` or more index scans. */
async function countScans(after: number): Promise<{ indexScans: number; fullScans: Record<string, number> }> {
  return until("the server's statistics", async () => {
    const rows = await db.sql(
      `SELECT relname, seq_scan::int, idx_scan::int FROM pg_stat_user_tables
       WHERE relname IN ('jobs', 'past_attempts', 'attempt_reports', 'attempt_logs', 'results', 'artifacts', 'ready_jobs', 'timers')`,
    );
    const indexScans = rows.reduce((sum, row) => sum + row.idx_scan, 0);
    const fullScans = Object.fromEntries(rows.map((row) => [row.relname, row.seq_scan]));
    return indexScans > after && { indexScans, fullScans };
  });
}

describe("the hot statements, as the restricted role", () => {
  it.each([0, 20_000])("read by index only, with %d other jobs in the tables", async (others) => {
    if (others > 0) {
      await db.oracle.enqueueMany(
        "filler",
        Array.from({ length: others }, (_, n) => n),
        { runAfter: 3600 },
      );
      await db.sql("ANALYZE");
    }
    await db.sql("SELECT pg_stat_reset()");
    const before = await countScans(-1);
    const store = workerDatabase(db);
    await runHotStatements(store, `plans-${others}`);
    await store.close();
    const { fullScans } = await countScans(before.indexScans + 20);
    expect(fullScans).toEqual(before.fullScans);
  });

  it("attempts of a job are found by index, whoever reads them", async () => {
    const reading =
      "EXPLAIN SELECT * FROM oracle.attempts WHERE job_id = '00000000-0000-0000-0000-000000000000'";
    for (const role of ["worker", "server", "tenant"] as const)
      expect(JSON.stringify(await db.as(role, reading)), role).not.toMatch(/Seq Scan on jobs|Function Scan/);
  });

  it("attempts of many jobs are found by index, too", async () => {
    const plan = await db.as(
      "worker",
      "EXPLAIN SELECT a.* FROM unnest(ARRAY[gen_random_uuid()]) AS wanted(id) JOIN oracle.attempts a ON a.job_id = wanted.id",
    );
    expect(JSON.stringify(plan)).toMatch(/Index Scan using jobs_pkey/);
  });

  it("a list by spec hash, and dedupe, use its index", async () => {
    const plan = await db.as(
      "worker",
      "EXPLAIN SELECT * FROM oracle.jobs WHERE spec_hash = 'x' AND tenant_id = 'default'",
    );
    expect(JSON.stringify(plan)).toMatch(/idx_jobs_spec_hash/);
  });
});

describe("a claim of one takes one", () => {
  it.each([
    "enable_nestloop",
    "enable_hashjoin,enable_mergejoin",
    "enable_material",
    "enable_sort",
    "enable_indexscan",
    "enable_indexscan,enable_bitmapscan",
    "enable_indexscan,enable_bitmapscan,enable_indexonlyscan,enable_nestloop",
    "enable_tidscan",
    // A nested loop that runs its inner side anew for every row: IN (SELECT … LIMIT 1) takes all hundred here.
    "enable_material,enable_hashagg,enable_sort,enable_indexscan,enable_bitmapscan",
  ])("without %s", async (off) => {
    const queue = `one-${off}`;
    await db.oracle.enqueueMany(
      "any",
      Array.from({ length: 100 }, (_, n) => ({ n })),
      { queue },
    );
    const settings = ["role=oracle_worker", ...off.split(",").map((name) => `${name}=off`)];
    const url = new URL(db.url);
    url.searchParams.set("options", settings.map((setting) => `-c ${setting}`).join(" "));
    const odd = new Database({ url: url.href, maxConnections: 1 });
    const { leases } = await claimFrom(odd, queue, { limit: 1 });
    await odd.close();
    expect(leases).toHaveLength(1);
    const [row] = await db.sql(
      `SELECT count(*) FILTER (WHERE state = 'RUNNING')::int AS running,
         (SELECT count(*)::int FROM oracle.ready_jobs WHERE queue_name = $1) AS ready
       FROM oracle.jobs WHERE queue_name = $1`,
      [queue],
    );
    expect(row).toEqual({ running: 1, ready: 99 });
  });
});
