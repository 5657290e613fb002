import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { connect, createWorker } from "oracle-worker";
import type { EvolutionOptions } from "oracle-worker/evolution";
import { defineEvolution } from "oracle-worker/evolution";
import { describe, expect, inject, it } from "vitest";
import { verifyJob } from "../dist/verify.js";
import { runToEnd } from "./support/cli.js";
import { edits, good, measured, role, storedOf, useEvolution, useRepository } from "./support/evolution.js";
import { useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";
import { administer } from "./support/server.js";

const db = useTestDatabase();
const repository = useRepository();
const run = useEvolution(db, repository);
const newLogin = useLogins(db);

/** The good edit as a diff, with a count that is wrong. */
function diffFile(): string {
  const file = join(repository.home, "change.diff");
  const lines = ["--- a/sum.js", "+++ b/sum.js", "@@ -1,3 +1,7 @@"];
  lines.push("-export const sum = (a, b) => b + a;", "+export const sum = (a, b) => a + b;");
  writeFileSync(file, lines.join("\n"));
  return file;
}

async function textOf(artifacts: Record<string, string>[], kind: string): Promise<string> {
  const found = artifacts.find((each) => each.kind === kind);
  const { content } = (await db.oracle.openArtifact(found?.artifact_id as string)) ?? {};
  return text(content as Readable);
}

describe("an evolve_commit job", () => {
  it("leaves a commit on its branch, and its card, metrics and artifacts with the result", async () => {
    const { id, job, result } = await run(
      { planner: ({ files, spec }) => ({ summary: `${spec.goal}: ${files.join()}`, details: "by hand" }) },
      { island_id: "north", experiment_id: "first", notes: ["keep it short"] },
    );
    expect(job).toMatchObject({ state: "SUCCEEDED", error: null });
    const commit = repository.git("rev-parse", `evolution/job/${id}`);
    expect(result).toEqual({
      commit_hash: commit,
      branch: `evolution/job/${id}`,
      base_commit_hash: repository.base,
      subject: "Add in the order of the arguments",
      plan_summary: "Add faster: sum.js",
      evaluation_summary: "3 of 3 passed",
      metrics: [
        { name: "passed", value: 3 },
        { name: "seconds", value: 1.5 },
      ],
    });
    expect(repository.git("show", `${commit}:sum.js`)).toBe("export const sum = (a, b) => a + b;");
    expect(repository.git("rev-parse", `${commit}^`)).toBe(repository.base);
    expect(repository.git("show", "-s", "--format=%an %B", commit)).toBe(
      `oracle-worker Add in the order of the arguments\n\nThe order of the sum\n\nEvolution-Job: ${id}\n`.trimEnd(),
    );
    const stored = await storedOf(db, id);
    expect(stored.job).toMatchObject({
      repository_id: "sums",
      island_id: "north",
      experiment_id: "first",
      base_commit_hash: repository.base,
      result_commit_hash: commit,
      plan_summary: "Add faster: sum.js",
      ingestion_status: "PENDING",
      ingestion_attempts: 0,
      worker: { application: "oracle-worker", attempt_no: 1, pid: process.pid },
    });
    expect(stored.card).toMatchObject({
      commit_hash: commit,
      parent_commit_hash: repository.base,
      island_id: "north",
      subject: "Add in the order of the arguments",
      change_summary: "The order of the sum",
      evaluation_summary: "3 of 3 passed",
      key_files: ["sum.js"],
      highlights: [{ path: "sum.js", added: 1, deleted: 1 }],
    });
    expect(stored.metrics).toEqual([
      { name: "passed", value: 3, unit: null, higher_is_better: true, details: null },
      { name: "seconds", value: 1.5, unit: "s", higher_is_better: false, details: { runs: 3, best: 1.5 } },
    ]);
    expect(stored.artifacts.map(({ kind }) => kind)).toEqual([
      "evaluation_log",
      "plan",
      "prompt",
      "raw_output",
    ]);
    // On disk, not in the rows.
    for (const { reference } of stored.artifacts) expect(reference).not.toBeNull();
    expect(repository.worktrees()).toEqual([]);
    expect((await verifyJob(db.oracle, id)).checks.filter(({ matches }) => !matches)).toEqual([]);
  });

  it("lets programs play the roles, in the worktree, with an environment of their own", async () => {
    process.env.SECRET_OF_WORKER = "hunter2";
    process.env.LET_THROUGH = "yes";
    const { id, result } = await run({
      planner: { executable: role("planner") },
      coder: { executable: role("coder", diffFile()) },
      evaluator: { command: role("evaluator") },
      env: ["LET_THROUGH"],
    });
    delete process.env.SECRET_OF_WORKER;
    delete process.env.LET_THROUGH;
    // The evaluator removes the file: what was measured is what was committed all the same.
    expect(result).toMatchObject({
      subject: "Add faster in 1 file",
      evaluation_summary: "measured",
      metrics: [{ name: "speed", value: 2 }],
    });
    expect(repository.git("show", `${result?.commit_hash}:sum.js`)).toBe(
      "export const sum = (a, b) => a + b;",
    );
    const { artifacts } = await storedOf(db, id);
    expect(artifacts.map(({ kind }) => kind)).toEqual([
      "evaluation_log",
      "execution_log",
      "plan",
      "prompt",
      "raw_output",
    ]);
    expect(await textOf(artifacts, "execution_log")).toBe("coding true nothing yes\n");
    expect(await textOf(artifacts, "evaluation_log")).toContain("compiling\n{not json}");
    expect(await textOf(artifacts, "evaluation_log")).toContain("--- stderr\na warning");
  });

  it("lets an agent change the files itself", async () => {
    const { id, result } = await run({
      coder: { agent: role("agent") },
      evaluator: { command: role("evaluator") },
    });
    const { card, metrics, artifacts } = await storedOf(db, id);
    expect(card?.key_files).toEqual(["sum.js", "notes.md"]);
    expect(metrics).toMatchObject([{ name: "speed", value: 2, details: { files: 2 } }]);
    expect(repository.git("show", `${result?.commit_hash}:notes.md`)).toBe("By an agent.");
    expect(await textOf(artifacts, "raw_output")).toBe("prompt of some bytes\n");
    expect(await textOf(artifacts, "execution_log")).toBe("thinking\n");
    const prompt = await textOf(artifacts, "prompt");
    expect(prompt).toContain("# Goal\n\nAdd faster");
    // Its words are not read as changes, so it is not told of blocks.
    expect(prompt).toContain("edit them yourself");
    expect(prompt).not.toContain("SEARCH");
  });

  it("is told of its inspirations, and only of its own tenant's", async () => {
    const first = await run({}, { island_id: "south" });
    const commit = first.result?.commit_hash as string;
    const asked: unknown[] = [];
    const coder: EvolutionOptions["coder"] = ({ inspirations, prompt }) => {
      asked.push(inspirations, prompt.includes("seconds 1.5 s"));
      expect(prompt).toContain("<<<<<<< SEARCH");
      return { summary: "Again", edits };
    };
    await run({ coder }, { inspiration_commit_hashes: [commit] });
    expect(asked).toMatchObject([
      [{ commit_hash: commit, island_id: "south", subject: "Add in the order of the arguments" }],
      true,
    ]);
    asked.length = 0;
    await run({ coder }, { inspiration_commit_hashes: [commit] }, { tenant: "somebody else" });
    expect(asked).toEqual([[], false]);
  });

  it("does not pay its coder again for a retry", async () => {
    const asked: string[] = [];
    const { job, id } = await run(
      {
        planner: () => ({ summary: `plan ${asked.push("planner")}` }),
        coder: () => {
          asked.push("coder");
          return { summary: "Once", edits };
        },
        evaluator: (_request, { worktree }) => {
          asked.push("evaluator");
          if (asked.length > 3)
            return { ...measured, summary: readFileSync(join(worktree, "sum.js"), "utf8") };
          // What the second attempt needs is not in this repository alone.
          repository.git("prune", "--expire=now");
          throw new Error("not measured");
        },
      },
      {},
      { maxAttempts: 3 },
    );
    expect(job).toMatchObject({ state: "SUCCEEDED", attemptCount: 2, error: null });
    expect(asked).toEqual(["planner", "coder", "evaluator", "evaluator"]);
    expect((await storedOf(db, id)).card).toMatchObject({
      subject: "plan 1",
      evaluation_summary: "export const sum = (a, b) => a + b;\n",
    });
  });

  it("pushes its branch, also when it is not known whether it did", async () => {
    const remote = join(repository.home, "remote.git");
    repository.git("init", "--quiet", "--bare", remote);
    const { id, result } = await run({ push: remote });
    expect(repository.git("ls-remote", remote)).toBe(
      `${result?.commit_hash}\trefs/heads/evolution/job/${id}`,
    );
    const effects = await db.oracle.effects(id);
    expect(effects.map(({ name, kind, state }) => [name, kind, state])).toEqual([
      ["commit", "reconcilable", "CONFIRMED"],
      ["push", "reconcilable", "CONFIRMED"],
      ["card", "database", "CONFIRMED"],
    ]);
    const lost = await run({ push: join(repository.home, "nowhere.git") });
    expect(lost.job).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EVOLUTION_REPOSITORY" } });
  });
});

it("needs one attempt for each of many that run at once in one repository", async () => {
  const { workspace } = repository;
  const evolve = defineEvolution({ ...good, workspace });
  for (let n = 0; n < 2; n++) await db.worker({ jobs: [evolve], queues: ["crowd"], concurrency: 6 });
  const specs = Array.from({ length: 24 }, (_, n) => repository.spec({ goal: `Goal ${n}` }));
  const jobs = await db.oracle.enqueueMany("evolve_commit", specs, { queue: "crowd" });
  const ended = await Promise.all(jobs.map(({ id }) => db.oracle.wait(id, { timeoutSeconds: 50 })));
  expect(new Set(ended.map((job) => `${job?.state} ${job?.attemptCount} ${job?.error?.message}`))).toEqual(
    new Set(["SUCCEEDED 1 undefined"]),
  );
});

it("runs from a handlers file, under a supervisor", async () => {
  const handlers = join(repository.home, "handlers.mjs");
  const [program, mode] = role("agent");
  writeFileSync(
    handlers,
    `import { defineEvolution } from "oracle-worker/evolution";
     export const evolve = defineEvolution({
       coder: { agent: ${JSON.stringify([program, mode])} },
       evaluator: () => ({ summary: "looked at", metrics: [] }),
     });`,
  );
  const { id } = await db.oracle.enqueue("evolve_commit", repository.spec(), { queue: "supervised" });
  const env = { DATABASE_URL: db.url, ARTIFACTS: `file:${db.artifacts}` };
  const args = ["work", "--handlers", handlers, "--queues", "supervised", "--drain"];
  expect(await runToEnd(args, { env, cwd: repository.home })).toMatchObject({ code: 0 });
  expect((await db.oracle.get(id))?.state).toBe("SUCCEEDED");
  expect((await storedOf(db, id)).card?.key_files).toEqual(["sum.js", "notes.md"]);
});

it("works with a login that can only become the worker's role", async () => {
  const login = await newLogin({ roles: ["worker"] });
  await administer(inject("adminUrl"), `ALTER ROLE ${login.name} NOINHERIT`);
  await db.sql(`DO $$ BEGIN
    IF current_setting('server_version_num')::integer >= 160000 THEN
      EXECUTE 'GRANT oracle_worker TO ${login.name} WITH INHERIT FALSE, SET TRUE';
    END IF; END $$`);
  const oracle = await connect({ databaseUrl: login.url, artifacts: `file:${db.artifacts}` });
  const worker = await createWorker(oracle, {
    jobs: [defineEvolution({ ...good, workspace: repository.workspace })],
    queues: ["restricted"],
    pollSeconds: 0.1,
  });
  const { id } = await oracle.enqueue("evolve_commit", repository.spec(), { queue: "restricted" });
  expect((await oracle.wait(id, { timeoutSeconds: 60 }))?.state).toBe("SUCCEEDED");
  await worker.stop();
  await oracle.close();
  expect((await storedOf(db, id)).card?.job_id).toBe(id);
});
