import { connect } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { echo } from "../support/jobs.js";
import { until, useTestDatabase } from "../support/oracle.js";

// What a job costs the database, counted and not timed: a change that makes every job dearer shows here. Apart from the
// suites that share their server: the bytes of its log are everybody's.

const db = useTestDatabase();
const JOBS = 4000;

interface Counts {
  inserted: number;
  updated: number;
  hot: number;
  deleted: number;
}

async function counts(table: string): Promise<Counts> {
  const [row] = await db.sql(
    `SELECT n_tup_ins::int AS inserted, n_tup_upd::int AS updated, n_tup_hot_upd::int AS hot, n_tup_del::int AS deleted
     FROM pg_stat_user_tables WHERE schemaname = 'oracle' AND relname = $1`,
    [table],
  );
  return row as unknown as Counts;
}

async function written(): Promise<{ commits: number; bytes: number }> {
  const [row] = await db.sql(
    `SELECT xact_commit::int AS commits, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return row as { commits: number; bytes: number };
}

describe("a trivial job, submitted in bulk and drained", () => {
  it("writes four rows, changes three of them in place, and shares its commits with hundreds of others", async () => {
    const before = await written();
    const client = await connect({ databaseUrl: db.url });
    await client.enqueueMany(
      echo,
      Array.from({ length: JOBS }, (_, n) => ({ n })),
    );
    await client.close();
    const worker = await db.worker({ jobs: [echo], concurrency: 100, pollSeconds: 60 });
    await worker.drained();
    await worker.stop();

    // Statistics arrive when the connections they speak of have gone.
    await until("the statistics", async () => (await counts("ready_jobs"))?.deleted === JOBS);
    await until("the statistics", async () => (await counts("attempts"))?.updated === JOBS);
    expect(await counts("results")).toMatchObject({ inserted: JOBS, updated: 0 });
    const jobs = await counts("jobs");
    const attempts = await counts("attempts");
    expect(jobs).toMatchObject({ inserted: JOBS, updated: 2 * JOBS, deleted: 0 });
    expect(attempts).toMatchObject({ inserted: JOBS, updated: JOBS, deleted: 0 });
    expect(await counts("ready_jobs")).toMatchObject({ inserted: JOBS, updated: 0, deleted: JOBS });
    expect(await counts("timers")).toMatchObject({ inserted: 0 });
    // In place: no index is written again. A page that is full now and then is no fault.
    expect(jobs.hot / jobs.updated).toBeGreaterThan(0.9);
    expect(attempts.hot / attempts.updated).toBeGreaterThan(0.9);

    const after = await written();
    expect((after.commits - before.commits) / JOBS).toBeLessThan(0.05);
    expect((after.bytes - before.bytes) / JOBS).toBeLessThan(3000);
  });
});
