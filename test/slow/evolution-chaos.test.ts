import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useRepository } from "../support/evolution.js";
import { until, useTestDatabase } from "../support/oracle.js";

// Workers are killed at every stage of evolve_commit jobs, with real git. Afterwards what git holds and what the tables
// hold must be the same: a commit for each card, a card for each commit, one result each, and nothing else.

const JOBS = 50;
const WORKERS = 4;
/** Where a worker is killed: by itself, by its agent, its evaluator or its git, or while the database stores. */
const points = [
  "worktree-before",
  "worktree-after",
  "plan",
  "code",
  "evaluate",
  "lock",
  "commit-before",
  "commit-after",
  "push-before",
  "push-after",
  "persist",
  "settled",
];

const db = useTestDatabase();
const repository = useRepository();
const support = fileURLToPath(new URL("../support/evolution", import.meta.url));
const deaths = join(repository.home, "deaths");
const remote = join(repository.home, "remote.git");
const shims = join(repository.home, "bin");
const workers = new Set<ChildProcess>();
let over = false;
let kills = 0;

beforeAll(async () => {
  for (const folder of [deaths, join(deaths, "planned"), join(deaths, "done"), shims]) mkdirSync(folder);
  repository.git("init", "--quiet", "--bare", remote);
  const git = execFileSync("/bin/sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const shim = readFileSync(join(support, "git.sh"), "utf8")
    .replaceAll("@DEATHS@", deaths)
    .replaceAll("@SUPPORT@", support)
    .replaceAll("@GIT@", git);
  writeFileSync(join(shims, "git"), shim, { mode: 0o755 });
  // Whoever is to die while its card is stored says which process it is, and waits for it.
  await db.sql(`
    CREATE TABLE public.deaths (job_id uuid PRIMARY KEY);
    CREATE FUNCTION public.die_persisting() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      IF EXISTS (SELECT FROM public.deaths WHERE job_id = NEW.job_id) THEN
        PERFORM set_config('application_name', 'dying ' || NEW.job_id || ' ' || (
          SELECT w.pid FROM oracle.jobs j JOIN oracle.workers w USING (worker_id) WHERE j.job_id = NEW.job_id), false);
        WHILE EXISTS (SELECT FROM public.deaths WHERE job_id = NEW.job_id) LOOP
          PERFORM pg_sleep(0.02);
        END LOOP;
        -- Nobody is left to commit this; if somebody were, it must not be.
        RAISE EXCEPTION 'the worker outlived its death';
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER die BEFORE INSERT ON oracle.commit_cards FOR EACH ROW EXECUTE FUNCTION public.die_persisting();`);
});
afterAll(() => {
  over = true;
  for (const child of workers) child.kill("SIGKILL");
});

/** Keeps one worker process alive until it is all over. */
async function keepWorker(): Promise<void> {
  while (!over) {
    const child = spawn(process.execPath, [join(support, "worker.mjs")], {
      env: {
        PATH: `${shims}${delimiter}${process.env.PATH}`,
        HOME: process.env.HOME,
        DATABASE_URL: db.url,
        ARTIFACTS: `file:${db.artifacts}`,
        WORKSPACE: repository.workspace,
        REMOTE: remote,
        DEATHS: deaths,
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    workers.add(child);
    const [, signal] = await once(child, "exit");
    workers.delete(child);
    if (signal === "SIGKILL") kills++;
  }
}

/** Kills the workers that wait for it in the middle of the transaction that stores a result. */
async function killPersisting(): Promise<void> {
  while (!over) {
    const dying = await db.sql(
      "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'dying %'",
    );
    for (const { application_name } of dying) {
      const [, jobId, pid] = application_name.split(" ");
      const worker = [...workers].find((child) => child.pid === Number(pid));
      if (!worker) continue;
      worker.kill("SIGKILL");
      if (worker.exitCode === null && worker.signalCode === null) await once(worker, "exit");
      await db.sql("DELETE FROM public.deaths WHERE job_id = $1", [jobId]);
      mkdirSync(join(deaths, "done", `${jobId}.persist`), { recursive: true });
    }
    await sleep(50);
  }
}

/** Where job `n` dies, once or twice; all together die everywhere several times. */
function deathsOf(n: number): string[] {
  return [
    ...new Set(
      [n, n * 5 + 7].slice(0, n % 3 === 0 ? 2 : 1).map((at) => points[at % points.length] as string),
    ),
  ];
}

it("leaves a commit for each card, a card for each commit and no worktree, whoever is killed when", async () => {
  const inputs = Array.from({ length: JOBS }, (_, n) =>
    repository.spec({ goal: `Goal ${n}`, island_id: `island ${n % 3}`, experiment_id: "chaos" }),
  );
  const jobs = await db.oracle.enqueueMany("evolve_commit", inputs, { maxAttempts: 1000 });
  const planned = jobs.flatMap(({ id }, n) => deathsOf(n).map((point) => `${id}.${point}`));
  for (const death of planned) writeFileSync(join(deaths, "planned", death), "");
  for (const death of planned.filter((name) => name.endsWith(".persist"))) {
    await db.sql("INSERT INTO public.deaths VALUES ($1)", [death.split(".")[0]]);
  }
  const running = [killPersisting(), ...Array.from({ length: WORKERS }, keepWorker)];
  const unfinished = "SELECT count(*)::int AS n FROM oracle.jobs WHERE completed_at IS NULL";
  await until("all jobs to end", async () => (await db.sql(unfinished))[0]?.n === 0, 400_000);
  // A worker that dies when its job is settled does so after the job's end.
  const done = () => readdirSync(join(deaths, "done")).sort();
  await expect.poll(done).toEqual([...planned].sort());
  over = true;
  for (const child of workers) child.kill("SIGTERM");
  await Promise.all(running);

  const [row] = await db.sql(`
    SELECT
      (SELECT count(*)::int FROM oracle.jobs WHERE state = 'SUCCEEDED') AS succeeded,
      (SELECT count(*)::int FROM oracle.results) AS results,
      (SELECT count(*)::int FROM oracle.attempts WHERE status = 'SUCCEEDED') AS successes,
      (SELECT count(*)::int FROM oracle.attempts WHERE status = 'RUNNING') AS open_attempts,
      (SELECT count(*)::int FROM oracle.attempts) AS attempts,
      (SELECT count(*)::int FROM oracle.evolution_jobs) AS evolved,
      (SELECT count(*)::int FROM oracle.metrics WHERE name = 'files' AND value = 2) AS metrics,
      (SELECT count(*)::int FROM oracle.effects WHERE state <> 'CONFIRMED') AS open_effects,
      (SELECT count(*)::int FROM oracle.results r JOIN oracle.commit_cards c USING (job_id)
        WHERE r.result_payload ->> 'commit_hash' <> c.commit_hash) AS other_commits`);
  expect(row).toMatchObject({
    succeeded: JOBS,
    results: JOBS,
    successes: JOBS,
    open_attempts: 0,
    evolved: JOBS,
    metrics: JOBS,
    open_effects: 0,
    other_commits: 0,
  });

  // What git holds, here and at the remote, is what the cards say; and it is whole.
  const cards = await db.sql("SELECT job_id, commit_hash FROM oracle.commit_cards");
  const byJob = new Map(cards.map(({ job_id, commit_hash }) => [job_id, commit_hash]));
  expect(new Map([...repository.branches()].sort())).toEqual(new Map([...byJob].sort()));
  const pushed = repository.git("ls-remote", remote, "refs/heads/evolution/job/*").split("\n");
  expect(pushed.sort()).toEqual(
    [...byJob].map(([id, hash]) => `${hash}\trefs/heads/evolution/job/${id}`).sort(),
  );
  for (const { id } of jobs) {
    expect(repository.git("show", `evolution/job/${id}:second.txt`)).toBe(`second of ${id}`);
    expect(repository.git("rev-list", "--count", `evolution/job/${id}`)).toBe("2");
  }
  repository.git("fsck", "--connectivity-only");

  // Nothing is left of the dead.
  expect(repository.worktrees()).toEqual([]);
  expect(repository.git("worktree", "list").split("\n")).toHaveLength(1);
  expect(repository.git("status", "--porcelain")).toBe("");
  const locks = readdirSync(join(repository.folder, ".git"), { recursive: true }) as string[];
  expect(locks.filter((path) => path.endsWith(".lock"))).toEqual([]);
  // A worker may die for two jobs: one that has just been settled, and the next.
  expect(kills).toBeGreaterThan(planned.length / 2);
  console.log(`${kills} deaths, ${row?.attempts} attempts for ${JOBS} commits`);
});
