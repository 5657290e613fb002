import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { documents, type EvolveDocument, makeExampleRepository } from "./support/example-repository.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { type Running, runCli } from "./support/process.js";

// `oracle-worker evolve` on the repository of examples/evolution/, typed as its script prints it: real git, real rewrites,
// and a benchmark whose figures nobody knows before.

const db = useTestDatabase();
let env: Record<string, string>;
beforeAll(() => {
  env = { DATABASE_URL: db.url, ARTIFACTS: `file:${db.artifacts}`, HOME: process.env.HOME ?? "/" };
});

const cpu = (metrics: { name: string; value: number }[]) =>
  metrics.find(({ name }) => name === "cpu_ms")?.value as number;

/** No worktree, no commit without its card, no card without its commit, one result for each success. */
async function expectOrder(
  { repo, folder, git }: ReturnType<typeof makeExampleRepository>,
  repositoryId: string,
) {
  expect(git("worktree", "list").split("\n")).toHaveLength(1);
  const workspace = join(folder, ".oracle-worker/worktrees");
  expect(existsSync(workspace) ? readdirSync(workspace) : []).toEqual([]);
  const cards = await db.sql(
    `SELECT c.job_id, c.commit_hash, e.ingestion_status FROM oracle.commit_cards c JOIN oracle.evolution_jobs e USING (job_id)
     WHERE c.repository_id = $1 ORDER BY c.job_id`,
    [repositoryId],
  );
  const branches = git(
    "for-each-ref",
    "--format=%(refname:lstrip=4) %(objectname)",
    "refs/heads/evolution/job",
  );
  expect(branches.split("\n")).toEqual(cards.map(({ job_id, commit_hash }) => `${job_id} ${commit_hash}`));
  expect(cards.every(({ ingestion_status }) => ingestion_status === "INGESTED")).toBe(true);
  const jobs = await db.sql(
    `SELECT j.job_id FROM oracle.jobs j JOIN oracle.results r USING (job_id)
     WHERE j.job_type = 'evolve_commit' AND j.state = 'SUCCEEDED' AND j.input_payload ->> 'repository' = $1 ORDER BY 1`,
    [repo],
  );
  expect(jobs.map(({ job_id }) => job_id)).toEqual(cards.map(({ job_id }) => job_id));
}

function attemptsOf(repo: string) {
  return db.sql(
    `SELECT a.job_id, a.attempt_no, a.status FROM oracle.attempts a JOIN oracle.jobs j USING (job_id)
     WHERE j.input_payload ->> 'repository' = $1 ORDER BY 1, 2`,
    [repo],
  );
}

describe("evolve", { timeout: 600_000 }, () => {
  const example = makeExampleRepository();
  const { repo, folder, git } = example;
  const evolve = (...flags: string[]) => runToEnd(example.evolve(...flags), { env, cwd: folder });
  let ended: EvolveDocument;

  it("ends with a branch that is measurably better than the start", async () => {
    const end = await evolve();
    expect([end.code, end.stderr]).toEqual([0, ""]);
    const told = documents(end.stdout);
    ended = told.at(-1) as EvolveDocument;
    expect(ended).toMatchObject({ event: "ended", stopped: "generations", generations: 5, jobs: 20 });
    expect(ended.succeeded + ended.failed).toBe(20);
    expect(ended.start.commit_hash).toBe(git("rev-parse", "main"));
    expect(git("rev-parse", "evolution/best")).toBe(ended.best.commit_hash);
    expect(git("status", "--porcelain")).toBe("");
    // Measured anew, by nobody who had a part in it.
    const [before, after] = ["main", "evolution/best"].map((name) =>
      cpu(example.measure(git("rev-parse", name))),
    );
    expect(after as number).toBeLessThan((before as number) / 5);
    // It was no straight way: tests that fail, paths that lead out, a benchmark that is not to be touched.
    const failures = new Set(
      told.flatMap(({ error, state }) => (state === "FAILED_TERMINAL" ? [error?.code] : [])),
    );
    expect([...failures].sort()).toEqual(["EVOLUTION_EDITS", "EVOLUTION_EVALUATION"]);
    await expectOrder(example, ended.repository_id);
    // An evaluator has judged once; a coder was asked again.
    const tries = await db.sql(
      `SELECT error_json ->> 'code' AS code, min(attempt_count) AS least, max(attempt_count) AS most FROM oracle.jobs
       WHERE state = 'FAILED_TERMINAL' GROUP BY 1 ORDER BY 1`,
    );
    expect(tries).toEqual([
      { code: "EVOLUTION_EDITS", least: 3, most: 3 },
      { code: "EVOLUTION_EVALUATION", least: 1, most: 1 },
    ]);
  });

  it("builds on what islands have found, and shows them what others have", async () => {
    const cards = await db.sql("SELECT commit_hash, island_id, parent_commit_hash FROM oracle.commit_cards");
    const island = new Map(cards.map(({ commit_hash, island_id }) => [commit_hash, island_id]));
    const later = cards.filter(({ parent_commit_hash }) => parent_commit_hash !== ended.start.commit_hash);
    expect(later.length).toBeGreaterThan(0);
    for (const card of later) expect(island.get(card.parent_commit_hash)).toBe(card.island_id);
    const jobs = await db.sql(
      "SELECT input_payload AS spec FROM oracle.jobs WHERE job_type = 'evolve_commit'",
    );
    const inspired = jobs.filter(({ spec }) => spec.inspiration_commit_hashes.length > 0);
    expect(inspired.length).toBeGreaterThan(0);
    for (const { spec } of inspired) {
      for (const commit of spec.inspiration_commit_hashes)
        expect(island.get(commit)).not.toBe(spec.island_id);
    }
  });

  it("does nothing twice: the same command is the same experiment", async () => {
    const before = await attemptsOf(repo);
    const again = await evolve();
    expect(documents(again.stdout).at(-1)).toEqual(ended);
    expect(await attemptsOf(repo)).toEqual(before);
    // Asked for less, it does not take back what was found.
    const less = documents((await evolve("--generations", "1")).stdout).at(-1);
    expect(less).toMatchObject({ generations: 1, jobs: 4, best: ended.best });
    expect(git("rev-parse", "evolution/best")).toBe(ended.best.commit_hash);
  });

  it("stops at the target, and when its budget is used up", async () => {
    const half = await evolve("--target", String(ended.start.value / 1.2), "--generations", "50");
    const reached = documents(half.stdout).at(-1) as EvolveDocument;
    expect(reached.stopped).toBe("target");
    expect(reached.generations).toBeLessThanOrEqual(5);
    expect(reached.best.value).toBeLessThanOrEqual(ended.start.value / 1.2);
    const used = await evolve("--max-jobs", "20", "--generations", "50");
    expect(documents(used.stdout).at(-1)).toMatchObject({ stopped: "budget", generations: 5, jobs: 20 });
    const one = await evolve("--max-jobs", "21", "--generations", "50");
    expect(documents(one.stdout).at(-1)).toMatchObject({ stopped: "budget", generations: 6, jobs: 21 });
  });

  it("tells a person what has become of it", async () => {
    const { stdout } = await runAsPerson(example.evolve(), { env, cwd: folder });
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^experiment evolution-[0-9a-f]{8}: measuring [0-9a-f]{12}$/);
    expect(lines[1]).toMatch(/^the start has cpu_ms [\d.]+ ms; lower is better$/);
    expect(stdout).toMatch(/^ {2}\d\.\d {2}island-\d {2}SUCCEEDED {2}[\d.]+ ms {2}[0-9a-f]{12} {2}\w/m);
    expect(stdout).toMatch(/^ {2}\d\.\d {2}island-\d {2}FAILED_TERMINAL {2}\w/m);
    expect(stdout).toMatch(/^generation 5: best cpu_ms [\d.]+ ms, [0-9a-f]{12} of island-\d$/m);
    expect(lines.at(-2)).toMatch(
      /^All generations are done\. Generations: 5\. Jobs: 20, of which \d+ succeeded and \d+ failed\.$/,
    );
    expect(lines.at(-1)).toMatch(/^cpu_ms [\d.]+ → [\d.]+ ms in evolution\/best \([0-9a-f]{12}\); see git /);
  });

  it("draws a table on a terminal, over and over", async () => {
    const inTerminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    const args = ["-c", inTerminal, process.execPath, "dist/cli/main.js", ...example.evolve()];
    const terminal = { PATH: process.env.PATH, ...env, TERM: "xterm", NO_COLOR: "1" };
    const { stdout } = await promisify(execFile)("python3", args, { env: terminal });
    const screens = stdout.replaceAll("\r", "").split("\u001b[J");
    expect(screens.length).toBeGreaterThan(20);
    const [titles, ...rows] = screens.at(-1)?.split("\n") ?? [];
    expect(titles).toMatch(/^GENERATION {2}JOBS {2}RUNNING {2}SUCCEEDED {2}FAILED {2}BEST cpu_ms {2}COMMIT/);
    const counts = rows.slice(0, 5).map((row) => row.trim().split(/\s+/).slice(0, 3));
    expect(counts).toEqual([1, 2, 3, 4, 5].map((generation) => [String(generation), "4", "-"]));
    // Below it, why the latest jobs failed.
    const ended = rows.findIndex((row) => row.startsWith("All generations are done."));
    expect(ended).toBeGreaterThan(5);
    for (const row of rows.slice(5, ended)) {
      expect(row).toMatch(/^ {2}\d\.\d {2}island-\d {2}FAILED_TERMINAL {2}EVOLUTION_/);
    }
  });
});

describe("evolve that is stopped in the middle", { timeout: 600_000 }, () => {
  /** Waits until a job has ended and another runs. */
  const midway = (running: Running) =>
    until(
      "a job to have ended and another to run",
      async () => {
        const states = new Map(documents(running.output()).map(({ job_id, state }) => [job_id, state]));
        const seen = [...states.values()];
        return seen.includes("SUCCEEDED") && seen.includes("RUNNING");
      },
      300_000,
    );
  const flags = ["--generations", "2", "--json"];

  it("by Ctrl-C goes on with the same command, and repeats no job that has ended", async () => {
    const example = makeExampleRepository();
    const running = runCli(example.evolve(...flags), env, example.folder);
    await midway(running);
    running.process.kill("SIGINT");
    expect(await running.ended).toBe(130);
    const told = documents(running.output()).at(-1) as EvolveDocument;
    expect(told).toMatchObject({ event: "ended", stopped: "interrupted" });
    await expectOrder(example, told.repository_id);
    const before = await attemptsOf(example.repo);
    expect(before.filter(({ status }) => status === "RUNNING")).toEqual([]);

    const end = await runToEnd(example.evolve(...flags.slice(0, 2)), { env, cwd: example.folder });
    const ended = documents(end.stdout).at(-1) as EvolveDocument;
    expect(ended).toMatchObject({
      stopped: "generations",
      generations: 2,
      jobs: 8,
      experiment_id: told.experiment_id,
    });
    const done = new Set(before.filter(({ status }) => status === "SUCCEEDED").map(({ job_id }) => job_id));
    expect(done.size).toBeGreaterThan(1);
    const after = await attemptsOf(example.repo);
    expect(after.filter(({ job_id }) => done.has(job_id))).toEqual(
      before.filter(({ job_id }) => done.has(job_id)),
    );
    await expectOrder(example, told.repository_id);
  });

  it("by kill -9 does so too", async () => {
    const example = makeExampleRepository();
    const shortLease = { ...env, LEASE_SECONDS: "3" };
    const running = runCli(example.evolve(...flags), shortLease, example.folder);
    await midway(running);
    running.process.kill("SIGKILL");
    expect(await running.ended).toBe("SIGKILL");
    const before = await attemptsOf(example.repo);
    const done = new Set(before.filter(({ status }) => status === "SUCCEEDED").map(({ job_id }) => job_id));

    const end = await runToEnd(example.evolve(...flags.slice(0, 2)), {
      env: shortLease,
      cwd: example.folder,
    });
    const ended = documents(end.stdout).at(-1) as EvolveDocument;
    expect(ended).toMatchObject({ stopped: "generations", generations: 2, jobs: 8 });
    const after = await attemptsOf(example.repo);
    expect(after.filter(({ job_id }) => done.has(job_id))).toEqual(
      before.filter(({ job_id }) => done.has(job_id)),
    );
    expect(after.some(({ status }) => status === "LEASE_EXPIRED")).toBe(true);
    await expectOrder(example, ended.repository_id);
  });
});
