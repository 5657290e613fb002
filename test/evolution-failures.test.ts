import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineEvolution } from "oracle-worker/evolution";
import { beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { settle } from "../dist/store/settle.js";
import { isAlive, pidsIn } from "./support/attempt.js";
import {
  edits,
  good,
  measured,
  role,
  storedOf,
  TestRepository,
  useEvolution,
  useRepository,
} from "./support/evolution.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const repository = useRepository();
const run = useEvolution(db, repository);
let workerDb: Database;
beforeAll(() => {
  workerDb = workerDatabase(db);
  return () => workerDb.close();
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
      "JSON has no such number",
    ],
    [
      "a number without an end",
      ["say", '{"summary": "", "metrics": [{"name": "a",\n"value": -Infinity}]}'],
      "JSON has no such number",
    ],
    [
      "a number that is too large",
      ["say", '{"summary": "", "metrics": [{"name": "a", "value": 1e400}]}'],
      "JSON has no such number",
    ],
    ["a key twice", ["say", '{"summary": "", "summary": "", "metrics": []}'], "is there twice"],
    ["a document of another shape", ["say", '{"summary": "fine"}'], "The evaluator's answer: $.metrics"],
    [
      "65 metrics",
      ["say", JSON.stringify({ summary: "", metrics: Array(65).fill({ name: "a", value: 1 }) })],
      "The evaluator's answer: $.metrics",
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

  it.each<[string, unknown, string]>([
    ["nothing", undefined, "The evaluator's answer: $: "],
    ["NaN", { summary: "", metrics: [{ name: "a", value: Number.NaN }] }, "answer: $.metrics[0].value: "],
  ])(
    "EVOLUTION_EVALUATION when an evaluator that is a function returns %s, at once",
    async (_what, answer, message) => {
      const evaluator = () => answer as typeof measured;
      expect(await failure({ evaluator }, {}, thrice)).toMatchObject({
        attempts: 1,
        code: "EVOLUTION_EVALUATION",
        message: expect.stringContaining(message),
      });
    },
  );

  it.each<[string, object, string]>([
    ["no summary", { edits }, "The coder's answer: $.summary: "],
    ["a NUL", { summary: "x", edits: "\0" }, "NUL"],
    ["edits and a diff", { summary: "x", edits, diff: "" }, "one or the other"],
  ])(
    "EVOLUTION_EDITS when a coder, function or program, answers with %s, after each attempt",
    async (_what, answer, message) => {
      const coders = [
        () => answer as { summary: string },
        { executable: role("answer", JSON.stringify(answer)) },
      ];
      for (const coder of coders) {
        expect(await failure({ coder }, {}, { maxAttempts: 2 })).toMatchObject({
          attempts: 2,
          code: "EVOLUTION_EDITS",
          message: expect.stringContaining(message),
        });
      }
    },
  );

  it("EVOLUTION_EDITS when a coder's program answers with too much, after each attempt", async () => {
    const coder = { executable: role("answer", "too much") };
    expect(await failure({ coder }, {}, { maxAttempts: 2 })).toMatchObject({
      attempts: 2,
      code: "EVOLUTION_EDITS",
      message: "The coder's answer: it wrote more than 1048576 bytes to stdout.",
    });
  });

  it("EVOLUTION_EDITS with the place when a coder's program answers with a NUL", async () => {
    const coder = { executable: role("answer", JSON.stringify({ summary: "x", edits: "\0" })) };
    expect(await failure({ coder })).toMatchObject({
      field: "$.result.edits",
      message: expect.stringContaining("The coder's answer is refused at $.result.edits: "),
    });
  });

  it("OUTPUT_INVALID when a planner answers with no summary, and says that it was the planner", async () => {
    expect(await failure({ planner: { executable: role("answer", "{}") } })).toMatchObject({
      code: "OUTPUT_INVALID",
      message: expect.stringContaining("The planner's answer: $.summary: "),
    });
  });

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

  it.each<[string, (folder: string) => void]>([
    [
      "a file .git",
      (folder) => {
        mkdirSync(folder);
        writeFileSync(join(folder, ".git"), `gitdir: ${join(repository.folder, ".git")}\n`);
      },
    ],
    [
      "a symlink .git",
      (folder) => {
        mkdirSync(folder);
        symlinkSync(join(repository.folder, ".git"), join(folder, ".git"));
      },
    ],
    ["a linked worktree", (folder) => repository.git("worktree", "add", "--quiet", "--detach", folder)],
    [
      "a folder for git of its own with another's branches",
      (folder) => {
        repository.git("init", "--quiet", folder);
        writeFileSync(join(folder, ".git", "commondir"), `${join(repository.folder, ".git")}\n`);
      },
    ],
  ])("EVOLUTION_REPOSITORY when %s leads to where the worker may not go, at once", async (_what, make) => {
    const fenced = mkdtempSync(join(repository.home, "fenced-"));
    const folder = join(fenced, "inside");
    make(folder);
    const { job, id } = await run({ repositories: [fenced] }, { repository: folder }, thrice);
    expect(job).toMatchObject({
      attemptCount: 1,
      error: { code: "EVOLUTION_REPOSITORY", message: expect.stringContaining("outside the folders") },
    });
    expect(repository.branches().has(id)).toBe(false);
    // With both of its places inside the fence, it is a repository like others.
    const both = [fenced, repository.folder];
    expect((await run({ repositories: both }, { repository: folder })).job?.state).toBe("SUCCEEDED");
    rmSync(fenced, { recursive: true });
    repository.git("worktree", "prune");
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
    const halfMade = `${id}.${randomUUID()}`;
    const elsewhere = `${randomUUID()}.${randomUUID()}`;
    for (const name of [alive, dead]) {
      repository.git("worktree", "add", "--quiet", "--detach", "--lock", join(repository.workspace, name));
    }
    // One that git had begun and not ended.
    mkdirSync(join(repository.folder, ".git", "worktrees", halfMade));
    // And what is not this installation's.
    const others = [join(repository.workspace, elsewhere), join(repository.workspace, "somebody's own")];
    for (const folder of others) mkdirSync(folder);
    await run({});
    expect(repository.worktrees().sort()).toEqual([alive, alive, elsewhere, "somebody's own"].sort());
    await db.oracle.cancel(id);
    await settle(workerDb, [{ lease: lease as Lease, outcome: { kind: "cancelled" } }]);
    for (const folder of others) rmSync(folder, { recursive: true });
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
