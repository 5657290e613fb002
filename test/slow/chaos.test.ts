import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { useTestDatabase } from "../support/oracle.js";
import { handlers, type Running, runCli } from "../support/process.js";

// Eight worker processes drain a queue while something keeps killing them, now and then with their supervisor.

const JOBS = Number(process.env.CHAOS_JOBS ?? 50_000);
const SUPERVISORS = 4;
const queue = "chaos";

const db = useTestDatabase();

function startSupervisor(): Running {
  const env = {
    DATABASE_URL: db.url,
    LEASE_SECONDS: "3",
    POLL_INTERVAL: "200ms",
    LOG_LEVEL: "error",
  };
  return runCli(
    ["work", "--handlers", handlers, "--queues", queue, "--processes", "2", "--concurrency", "20"],
    env,
  );
}

/**
 * Kills a random worker process every now and then, every tenth time its supervisor too. Between two kills something
 * must have been finished: on a slow machine processes would be killed faster than they can start.
 */
async function disturb(supervisors: Running[], finished: () => number): Promise<number> {
  let kills = 0;
  for (let before = 0; finished() < JOBS; ) {
    await sleep(150 + Math.random() * 300);
    if (finished() === before) continue;
    const index = Math.floor(Math.random() * supervisors.length);
    const victim = supervisors[index] as Running;
    const children = victim.children();
    const child = children[Math.floor(Math.random() * children.length)];
    if (child === undefined) continue;
    kills++;
    before = finished();
    const withSupervisor = kills % 10 === 0;
    if (withSupervisor) victim.process.kill("SIGKILL");
    process.kill(child, "SIGKILL");
    if (withSupervisor) supervisors[index] = startSupervisor();
  }
  return kills;
}

it("gives every job one result and accounts for every attempt", async () => {
  for (let at = 0; at < JOBS; at += 10_000) {
    const inputs = Array.from({ length: Math.min(10_000, JOBS - at) }, (_, n) => ({ n: at + n }));
    await db.oracle.enqueueMany("quick", inputs, { queue, maxAttempts: 1000 });
  }
  const supervisors = Array.from({ length: SUPERVISORS }, startSupervisor);
  let finished = 0;
  const disturbance = disturb(supervisors, () => finished);
  while (finished < JOBS) {
    const [row] = await db.sql("SELECT count(*)::int AS n FROM oracle.results");
    finished = row?.n as number;
    await sleep(100);
  }
  const kills = await disturbance;
  await sleep(1000);
  for (const { process } of supervisors) process.kill("SIGTERM");
  await Promise.all(supervisors.map(({ ended }) => ended));

  const [row] = await db.sql(`
    SELECT
      (SELECT count(*)::int FROM oracle.jobs) AS jobs,
      (SELECT count(*)::int FROM oracle.jobs WHERE state = 'SUCCEEDED') AS succeeded,
      (SELECT count(*)::int FROM oracle.results) AS results,
      (SELECT count(*)::int FROM oracle.attempts WHERE status = 'RUNNING') AS open_attempts,
      (SELECT count(*)::int FROM oracle.attempts WHERE status = 'SUCCEEDED') AS succeeded_attempts,
      (SELECT count(*)::int FROM oracle.attempts WHERE status IN ('LEASE_EXPIRED', 'SUPERSEDED')) AS lost_attempts,
      (SELECT count(*)::int FROM oracle.attempts WHERE status <> 'SUCCEEDED' AND cause IS NULL) AS without_cause,
      (SELECT count(*)::int FROM oracle.jobs j JOIN oracle.results r USING (job_id)
        WHERE r.attempt_id <> j.current_attempt_id OR r.result_payload <> j.input_payload) AS wrong_results,
      (SELECT count(*)::int FROM oracle.jobs j WHERE j.attempt_count <>
        (SELECT count(*) FROM oracle.attempts a WHERE a.job_id = j.job_id)) AS miscounted,
      (SELECT count(*)::int FROM oracle.jobs j WHERE j.interruptions <>
        (SELECT count(*) FROM oracle.attempts a WHERE a.job_id = j.job_id AND a.status = 'RELEASED')) AS misreleased,
      (SELECT count(*)::int FROM oracle.jobs j JOIN oracle.results r USING (job_id)
        JOIN oracle.attempts a ON a.attempt_id = r.attempt_id AND a.job_id = r.job_id
        WHERE a.status <> 'SUCCEEDED' OR a.attempt_no <> j.attempt_count) AS wrong_winners`);
  expect(kills).toBeGreaterThan(5);
  expect(row?.lost_attempts).toBeGreaterThan(0);
  expect(row).toMatchObject({
    jobs: JOBS,
    succeeded: JOBS,
    results: JOBS,
    open_attempts: 0,
    succeeded_attempts: JOBS,
    without_cause: 0,
    wrong_results: 0,
    miscounted: 0,
    misreleased: 0,
    wrong_winners: 0,
  });
  console.log(`${JOBS} jobs, ${kills} kills, ${row?.lost_attempts} attempts lost to them`);
});
