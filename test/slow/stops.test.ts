import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "oracle-worker";
import pg from "pg";
import { expect, it } from "vitest";
import { openEmbedded } from "../../dist/embedded/index.js";
import { until, useTestDatabase } from "../support/oracle.js";
import { handlers, runCli } from "../support/process.js";

// What an operator does to a busy installation: stop a worker, restart the database.

const db = useTestDatabase();
const place = mkdtempSync(join(tmpdir(), "oracle-worker-stops-"));

/** Every attempt has an end and a cause, each job counts its attempts, and the winner made the result. */
const ledger = (queue: string) => `
  SELECT count(*)::int AS jobs,
    count(*) FILTER (WHERE j.state = 'SUCCEEDED')::int AS succeeded,
    count(*) FILTER (WHERE j.state = 'RUNNING')::int AS running,
    count(r.job_id)::int AS results,
    coalesce(sum(a.lost), 0)::int AS lost,
    coalesce(sum(a.open), 0)::int AS open,
    coalesce(sum(a.unexplained), 0)::int AS unexplained,
    count(*) FILTER (WHERE j.attempt_count <> coalesce(a.n, 0))::int AS miscounted
  FROM oracle.jobs j LEFT JOIN oracle.results r USING (job_id)
  LEFT JOIN LATERAL (
    SELECT count(*) AS n, count(*) FILTER (WHERE status = 'RUNNING') AS open,
      count(*) FILTER (WHERE status IN ('LEASE_EXPIRED', 'SUPERSEDED', 'FAILED')) AS lost,
      count(*) FILTER (WHERE status NOT IN ('SUCCEEDED', 'RUNNING') AND cause IS NULL) AS unexplained
    FROM oracle.attempts a WHERE a.job_id = j.job_id) a ON true
  WHERE j.queue_name = '${queue}'`;

it("SIGTERM under load: everything is finished or handed back within the grace, and no attempt is lost", async () => {
  const queue = "stopped";
  const file = join(place, "runs");
  const long = Array.from({ length: 40 }, () => ({ file, ms: 1500 }));
  const short = Array.from({ length: 20_000 }, (_, n) => ({ n }));
  await db.oracle.enqueueMany("logged", long, { queue, priority: 1 });
  for (let at = 0; at < short.length; at += 2000)
    await db.oracle.enqueueMany("quick", short.slice(at, at + 2000), { queue });
  const env = { DATABASE_URL: db.url, SHUTDOWN_GRACE: "20s", LOG_LEVEL: "info" };
  const args = ["work", "--handlers", handlers, "--queues", queue, "--processes", "2", "--concurrency", "10"];
  const worker = runCli(args, env);
  await until(
    "work in full swing",
    async () => {
      const [row] = await db.sql(ledger(queue));
      return row?.running > 0 && row?.succeeded > 0;
    },
    120_000,
  );
  worker.process.kill("SIGTERM");
  expect(await worker.ended).toBe(0);
  const stops = worker
    .output()
    .split("\n")
    .filter((line) => line.includes('"worker.stopped"'))
    .map((line) => JSON.parse(line));
  // Nothing was left running when the grace was over.
  expect(stops.map(({ abandoned }) => abandoned)).toEqual([0, 0]);
  const [row] = await db.sql(ledger(queue));
  expect(row).toMatchObject({ running: 0, open: 0, lost: 0, unexplained: 0, miscounted: 0 });
  expect(row?.results).toBe(row?.succeeded);
  expect(row?.succeeded).toBeGreaterThan(0);
  // It was stopped in the middle, not at the end.
  expect(row?.succeeded).toBeLessThan(long.length + short.length);
  expect(worker.children()).toEqual([]);
});

it("a database restarted under load comes back without a restart of the worker", async () => {
  const queue = "restarted";
  const directory = join(place, "server");
  const first = await openEmbedded({ directory });
  const admin = await connect({ databaseUrl: first.adminUrl });
  await admin.migrate();
  const JOBS = 20_000;
  for (let at = 0; at < JOBS; at += 2000)
    await admin.enqueueMany(
      "quick",
      Array.from({ length: 2000 }, (_, n) => ({ n: at + n })),
      {
        queue,
        maxAttempts: 20,
      },
    );
  await admin.close();
  const env = { DATABASE_URL: first.adminUrl, LEASE_SECONDS: "5", LOG_LEVEL: "info" };
  const worker = runCli(["work", "--handlers", handlers, "--queues", queue, "--processes", "2"], env);
  const look = async () => {
    const client = new pg.Client(first.adminUrl);
    await client.connect();
    const { rows } = await client.query(ledger(queue)).finally(() => client.end());
    return rows[0];
  };
  let processes: number[] = [];
  await until(
    "work in full swing",
    async () => {
      processes = worker.children();
      const { succeeded } = await look();
      return processes.length === 2 && succeeded > 0 && succeeded < JOBS;
    },
    120_000,
  );
  await first.release();
  await sleep(2000);
  const second = await openEmbedded({ directory });
  try {
    // The same address: nobody told the worker anything.
    expect(second.adminUrl).toBe(first.adminUrl);
    await until("the rest", async () => (await look()).succeeded === JOBS, 300_000);
    expect(worker.children()).toEqual(processes);
    expect(worker.process.exitCode).toBeNull();
    expect(worker.output()).toContain("database is back");
    expect(await look()).toMatchObject({ results: JOBS, open: 0, unexplained: 0, miscounted: 0 });
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  } finally {
    await second.release();
    rmSync(place, { recursive: true, force: true });
  }
});
