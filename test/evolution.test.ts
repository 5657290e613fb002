import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { connect, createWorker } from "oracle-worker";
import type { EvolutionOptions } from "oracle-worker/evolution";
import { defineEvolution } from "oracle-worker/evolution";
import { beforeAll, describe, expect, inject, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { settle } from "../dist/store/settle.js";
import { verifyJob } from "../dist/verify.js";
import { isAlive, pidsIn } from "./support/attempt.js";
import { runToEnd } from "./support/cli.js";
import { storedOf, TestRepository, useRepository } from "./support/evolution.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";
import { administer } from "./support/server.js";

const db = useTestDatabase();
const repository = useRepository();
const newLogin = useLogins(db);
let workerDb: Database;
beforeAll(() => {
  workerDb = workerDatabase(db);
  return () => workerDb.close();
});

const edits = [
  "Here it is:",
  "sum.js",
  "```js",
  "<<<<<<< SEARCH",
  "export const sum = (a, b) => b + a;",
  "=======",
  "export const sum = (a, b) => a + b;",
  ">>>>>>> REPLACE",
  "```",
].join("\n");

const measured = {
  summary: "3 of 3 passed",
  metrics: [
    { name: "seconds", value: 2, unit: "s", higher_is_better: false, details: { runs: 3, best: 2 } },
    { name: "passed", value: 3 },
    { name: "seconds", value: 1.5, unit: "s", higher_is_better: false, details: { best: 1.5 } },
  ],
};

const good: Pick<EvolutionOptions, "coder" | "evaluator"> = {
  coder: () => ({ summary: "The order of the sum", message: "Add in the order of the arguments", edits }),
  evaluator: () => measured,
};

const role = (...args: string[]): [string, ...string[]] => [
  fileURLToPath(new URL("support/evolution/role.mjs", import.meta.url)),
  ...args,
];

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

/** Runs one job to its end in a queue and with a worker of its own. */
async function run(
  roles: Partial<EvolutionOptions>,
  changes: Record<string, unknown> = {},
  { maxAttempts = 1, of = repository, tenant = "default" } = {},
) {
  const queue = `evolution-${Math.random()}`;
  const { workspace } = of;
  const backoff = { kind: "fixed", baseSeconds: 0.02 } as const;
  const worker = await db.worker({
    jobs: [defineEvolution({ ...good, workspace, backoff, ...roles })],
    queues: [queue],
  });
  const { id } = await db.oracle.enqueue("evolve_commit", of.spec(changes), { queue, maxAttempts, tenant });
  const job = await db.oracle.wait(id, { timeoutSeconds: 60 });
  await worker.stop();
  return { id, job, result: (await db.oracle.result(id))?.payload as Record<string, unknown> | undefined };
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
    expect(await textOf(artifacts, "prompt")).toContain("# Goal\n\nAdd faster");
  });

  it("is told of its inspirations, and only of its own tenant's", async () => {
    const first = await run({}, { island_id: "south" });
    const commit = first.result?.commit_hash as string;
    const asked: unknown[] = [];
    const coder: EvolutionOptions["coder"] = ({ inspirations, prompt }) => {
      asked.push(inspirations, prompt.includes("seconds 1.5 s"));
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

describe("an evolve_commit job fails with", () => {
  const failure = async (...given: Parameters<typeof run>) => {
    const { id, job } = await run(...given);
    expect((await storedOf(db, id)).card).toBeUndefined();
    expect((given[2]?.of ?? repository).worktrees()).toEqual([]);
    return { state: job?.state, attempts: job?.attemptCount, ...job?.error };
  };
  const thrice = { maxAttempts: 3 };

  it("EVOLUTION_UNCHANGED when nothing changed, at once", async () => {
    const coder = () => ({ summary: "Nothing to do" });
    expect(await failure({ coder }, {}, thrice)).toMatchObject({
      state: "FAILED_TERMINAL",
      attempts: 1,
      code: "EVOLUTION_UNCHANGED",
    });
  });

  it("JOB_PRECONDITION when the base commit is unknown, at once", async () => {
    const base_commit_hash = "0123456789abcdef0123456789abcdef01234567";
    expect(await failure({}, { base_commit_hash }, thrice)).toMatchObject({
      state: "FAILED_TERMINAL",
      attempts: 1,
      code: "JOB_PRECONDITION",
      name: "JobPreconditionError",
      message: expect.stringContaining(base_commit_hash),
    });
    // A tree is no commit.
    const tree = repository.git("rev-parse", "HEAD^{tree}");
    expect(await failure({}, { base_commit_hash: tree })).toMatchObject({ code: "JOB_PRECONDITION" });
  });

  it("INPUT_INVALID when the input breaks its bounds, at once", async () => {
    expect(await failure({}, { goal: "x".repeat(513) }, thrice)).toMatchObject({
      attempts: 1,
      code: "INPUT_INVALID",
      field: "$.goal",
    });
  });

  it.each([
    ["an exit code", ["fail"], "ended with exit code 4: a warning"],
    ["no document", ["say", "done"], "wrote no JSON document"],
    [
      "a number that is none",
      ["say", '{"summary": "", "metrics": [{"name": "a", "value": NaN}]}'],
      "no JSON document",
    ],
    ["a document of another shape", ["say", '{"summary": "fine"}'], "wrong at metrics"],
    [
      "65 metrics",
      ["say", JSON.stringify({ summary: "", metrics: Array(65).fill({ name: "a", value: 1 }) })],
      "wrong at metrics",
    ],
  ])(
    "EVOLUTION_EVALUATION when the evaluator answers with %s, and its output is kept",
    async (_what, args, message) => {
      const { id, job } = await run({ evaluator: { command: role("evaluator", ...args) } });
      expect(job?.error).toMatchObject({
        code: "EVOLUTION_EVALUATION",
        message: expect.stringContaining(message),
      });
      const kept = await db.oracle.artifacts(id);
      expect(kept.map(({ name }) => name)).toContain("evaluation.log");
      expect(repository.branches().has(id)).toBe(false);
    },
  );

  it("HANDLER_EXITED when an agent fails", async () => {
    expect(await failure({ coder: { agent: role("agent", "fail") } })).toMatchObject({
      code: "HANDLER_EXITED",
    });
  });

  it.each([
    ["does not exist", (of: TestRepository) => ({ repository: join(of.home, "nowhere") })],
    ["is no repository", (of: TestRepository) => ({ repository: of.home })],
    ["is a folder inside one", (of: TestRepository) => ({ repository: join(of.folder, "inner") })],
  ])("EVOLUTION_REPOSITORY when it %s", async (_what, changes) => {
    mkdirSync(join(repository.folder, "inner"), { recursive: true });
    expect(await failure({}, changes(repository))).toMatchObject({
      code: "EVOLUTION_REPOSITORY",
      field: "repository",
    });
  });

  it("EVOLUTION_REPOSITORY when it lies where the worker may not go, at once", async () => {
    const allowed = { repositories: [join(repository.home, "elsewhere")] };
    expect(await failure(allowed, {}, thrice)).toMatchObject({ attempts: 1, code: "EVOLUTION_REPOSITORY" });
    expect((await run({ repositories: [repository.home] })).job?.state).toBe("SUCCEEDED");
  });

  it.each(["planner", "coder", "evaluator"] as const)(
    "EVOLUTION_REPOSITORY when it vanishes during the %s's work, and leaves nothing",
    async (victim) => {
      const own = new TestRepository();
      const vanish = () => rmSync(own.folder, { recursive: true, force: true });
      const roles = {
        planner: () => ({ summary: "Plan" }),
        coder: good.coder as () => { summary: string },
        evaluator: () => measured,
      };
      const role = roles[victim];
      const failed = await failure(
        { ...roles, [victim]: () => [vanish(), role()][1] },
        {},
        { maxAttempts: 2, of: own },
      );
      expect(failed).toMatchObject({ state: "FAILED_TERMINAL", attempts: 2, code: "EVOLUTION_REPOSITORY" });
      own.remove();
    },
  );
});

describe("what an attempt leaves behind", () => {
  it("is removed when the job is cancelled, with the processes it started", async () => {
    const file = join(repository.home, "pid");
    const running = run({ coder: { agent: role("stay", file) } });
    const [pid] = await pidsIn(file);
    const [job] = (await db.oracle.list({ state: "RUNNING", type: "evolve_commit" })).items;
    await db.oracle.cancel(job?.jobId as string);
    expect((await running).job?.state).toBe("CANCELLED");
    expect(isAlive(pid as number)).toBe(false);
    await expect.poll(() => repository.worktrees()).toEqual([]);
  });

  it("is swept by the next job if the attempt does not hold its job, and kept if it does", async () => {
    const { id } = await db.oracle.enqueue("evolve_commit", repository.spec(), { queue: "held" });
    const [lease] = (await claimFrom(workerDb, "held")).leases;
    const alive = `${id}.${lease?.attemptId}`;
    const dead = `${id}.${randomUUID()}`;
    const unknown = `${randomUUID()}.${randomUUID()}`;
    for (const name of [alive, dead]) {
      repository.git("worktree", "add", "--quiet", "--detach", "--lock", join(repository.workspace, name));
    }
    // One that git had begun and not ended.
    mkdirSync(join(repository.folder, ".git", "worktrees", unknown));
    mkdirSync(join(repository.workspace, "somebody's own"));
    await run({});
    expect(repository.worktrees().sort()).toEqual([alive, alive, "somebody's own"]);
    await db.oracle.cancel(id);
    await settle(workerDb, [{ lease: lease as Lease, outcome: { kind: "cancelled" } }]);
    rmSync(join(repository.workspace, "somebody's own"), { recursive: true });
    await run({});
    expect(repository.worktrees()).toEqual([]);
  });

  it("is no branch: a job that fails after its commit loses it, and gets the same one back when it is retried", async () => {
    const remote = join(repository.home, "later.git");
    const failed = await run({ push: remote });
    expect(failed.job?.state).toBe("FAILED_TERMINAL");
    const commit = repository.branches().get(failed.id);
    expect(commit).toBeDefined();
    await run({});
    expect(repository.branches().has(failed.id)).toBe(false);
    repository.git("init", "--quiet", "--bare", remote);
    const queue = (await db.oracle.get(failed.id))?.queue as string;
    const worker = await db.worker({
      jobs: [defineEvolution({ ...good, workspace: repository.workspace, push: remote })],
      queues: [queue],
    });
    await db.oracle.retry(failed.id);
    expect((await db.oracle.wait(failed.id, { timeoutSeconds: 60 }))?.state).toBe("SUCCEEDED");
    await worker.stop();
    expect(repository.branches().get(failed.id)).toBe(commit);
    expect((await storedOf(db, failed.id)).card?.commit_hash).toBe(commit);
  });
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
