import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createWorker, type Oracle } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openEmbedded } from "../../dist/embedded/index.js";
import { echo } from "../support/jobs.js";
import { until } from "../support/oracle.js";

// What a job costs the database, counted and not timed: a change that makes every job dearer shows here. On a server of
// its own, because the bytes of a server's log are everybody's.

const JOBS = 4000;
const directory = mkdtempSync(join(tmpdir(), "oracle-worker-cost-"));
let server: Awaited<ReturnType<typeof openEmbedded>>;
let oracle: Oracle;
let client: pg.Client;
beforeAll(async () => {
  server = await openEmbedded({ directory, settings: { fsync: "off" } });
  oracle = await connect({ databaseUrl: server.adminUrl });
  await oracle.migrate();
  client = new pg.Client(server.adminUrl);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await oracle.close();
  await server.release();
  rmSync(directory, { recursive: true, force: true });
});

interface Counts {
  inserted: number;
  updated: number;
  hot: number;
  deleted: number;
}

async function counts(table: string): Promise<Counts> {
  const { rows } = await client.query(
    `SELECT n_tup_ins::int AS inserted, n_tup_upd::int AS updated, n_tup_hot_upd::int AS hot, n_tup_del::int AS deleted
     FROM pg_stat_user_tables WHERE schemaname = 'oracle' AND relname = $1`,
    [table],
  );
  return rows[0];
}

async function written(): Promise<{ commits: number; bytes: number }> {
  const { rows } = await client.query(
    `SELECT xact_commit::int AS commits, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return rows[0];
}

describe("a trivial job, submitted in bulk and drained", () => {
  it("writes three rows, changes one of them twice in place, and shares its commits with hundreds of others", async () => {
    const before = await written();
    await oracle.enqueueMany(
      echo,
      Array.from({ length: JOBS }, (_, n) => ({ n })),
    );
    const worker = await createWorker(oracle, { jobs: [echo], concurrency: 100, pollSeconds: 60 });
    await worker.drained();
    await worker.stop();
    const bytes = (await written()).bytes - before.bytes;
    // Statistics arrive when the connections they speak of have gone.
    await oracle.close();

    await until("the statistics", async () => (await counts("jobs"))?.inserted === JOBS);
    await until("the statistics", async () => (await counts("ready_jobs"))?.deleted === JOBS);
    await until("the statistics", async () => (await counts("results"))?.inserted === JOBS);
    expect(await counts("results")).toMatchObject({ inserted: JOBS, updated: 0 });
    const jobs = await counts("jobs");
    expect(jobs).toMatchObject({ inserted: JOBS, updated: 2 * JOBS, deleted: 0 });
    expect(await counts("past_attempts")).toMatchObject({ inserted: 0 });
    expect(await counts("attempt_reports")).toMatchObject({ inserted: 0 });
    expect(await counts("ready_jobs")).toMatchObject({ inserted: JOBS, updated: 0, deleted: JOBS });
    expect(await counts("timers")).toMatchObject({ inserted: 0 });
    // In place: no index is written again. A page that is full now and then is no fault.
    expect(jobs.hot / jobs.updated).toBeGreaterThan(0.9);
    expect(((await written()).commits - before.commits) / JOBS).toBeLessThan(0.05);
    expect(bytes / JOBS).toBeLessThan(2000);
  });
});
