import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runToEnd } from "./support/cli.js";
import { documents, makeExampleRepository } from "./support/example-repository.js";
import { useTestDatabase } from "./support/oracle.js";

// What `evolve` refuses: with a code and the field that is wrong, before anything is submitted.

const db = useTestDatabase();
const example = makeExampleRepository();
const { repo, folder, git } = example;
const plain = mkdtempSync(join(tmpdir(), "oracle-worker-plain-"));
let env: Record<string, string>;
beforeAll(() => {
  env = { DATABASE_URL: db.url, ARTIFACTS: `file:${db.artifacts}` };
  mkdirSync(join(repo, "inside"));
  git("branch", "mine");
  git("checkout", "--quiet", "--detach");
  git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message", "mine");
  git("branch", "--force", "mine");
  git("checkout", "--quiet", "main");
});
afterAll(() => rmSync(plain, { recursive: true, force: true }));

const run = (args: string[]) => runToEnd(args, { env, cwd: folder });

describe("evolve refuses", { timeout: 120_000 }, () => {
  const given = (flag: string, value: string) => [...example.evolve(), flag, value];
  it.each<[string, () => string[], string, string]>([
    ["no repository", () => ["evolve", "--goal", "g", "--evaluate", "e"], "--repo", "--repo"],
    [
      "nobody who codes",
      () => ["evolve", "--repo", repo, "--goal", "g", "--evaluate", "e"],
      "--coder",
      "--agent",
    ],
    ["two who code", () => given("--agent", "x"), "--coder", "one of them"],
    ["an open quote", () => given("--evaluate", "node 'a"), "--evaluate", "quotes are closed"],
    ["no generations", () => given("--generations", "0"), "--generations", "from 1 to"],
    [
      "a population smaller than its islands",
      () => given("--islands", "5"),
      "--population",
      "smaller than the number of islands",
    ],
    ["a target that is no number", () => given("--target", "fast"), "--target", "a number"],
    ["variables that are none", () => given("--env", "A B"), "--env", "environment variables"],
    ["a goal that is too long", () => given("--goal", "x".repeat(513)), "--goal", "1 to 512 characters"],
    ["a folder that is no repository", () => given("--repo", plain), "--repo", "not a git repository"],
    ["a folder that is not there", () => given("--repo", join(plain, "no")), "--repo", "no repository at"],
    [
      "a folder inside a repository",
      () => given("--repo", join(repo, "inside")),
      "--repo",
      "not a git repository",
    ],
    ["a base that is not there", () => given("--base", "v9"), "--base", "a branch, tag or hash"],
    [
      "a base that is an option",
      () => given("--base=--all", "").slice(0, -1),
      "--base",
      "a branch, tag or hash",
    ],
    ["a branch git does not allow", () => given("--branch", "a..b"), "--branch", "a name that git allows"],
    ["a branch like an option", () => given("--branch", "-x"), "--branch", "a name that git allows"],
    ["another branch in short", () => given("--branch", "@{-1}"), "--branch", "a name that git allows"],
  ])("%s", async (_what, args, field, why) => {
    const end = await run(args());
    expect(end).toMatchObject({ code: 2, stdout: "", error: { code: "INVALID_ARGUMENT", field } });
    expect(end.error.message).toContain(why);
    expect(await db.sql("SELECT 1 FROM oracle.jobs")).toEqual([]);
  });

  it.each<[string, string, string]>([
    ["that is checked out", "main", "is checked out"],
    ["of somebody else", "mine", "would be lost"],
    ["in the way of jobs", "evolution/job", "cannot be beside"],
  ])("a branch %s, which is not a matter of how it is written", async (_what, branch, why) => {
    const end = await run(given("--branch", branch));
    const error = { code: "EVOLUTION_BRANCH", field: "--branch" };
    expect(end).toMatchObject({ code: 3, stdout: "", error });
    expect(end.error.message).toMatch(/^--branch "/);
    expect(end.error.message).toContain(why);
    expect(await db.sql("SELECT 1 FROM oracle.jobs")).toEqual([]);
  });
});

describe("evolve fails", { timeout: 240_000 }, () => {
  it("when the evaluator fails at the start, and goes on once it is mended", async () => {
    const evaluator = join(folder, "evaluator.mjs");
    const args = [
      ...example.evolve("--generations", "1", "--population", "2"),
      "--evaluate",
      `node '${evaluator}'`,
    ];
    writeFileSync(evaluator, "process.stderr.write('no compiler here'); process.exit(7);");
    const broken = await run(args);
    expect(broken).toMatchObject({ code: 1, error: { code: "JOB_FAILED" } });
    expect(await db.sql("SELECT attempt_count FROM oracle.jobs")).toEqual([{ attempt_count: 1 }]);
    expect(broken.error.message).toMatch(/must succeed at the start.*EVOLUTION_EVALUATION.*no compiler here/);

    writeFileSync(evaluator, `console.log('{"summary": "fine", "metrics": [{"name": "size", "value": 3}]}')`);
    const other = await run([...args, "--metric", "speed", "--experiment", "of its own"]);
    expect(other).toMatchObject({ code: 2, error: { code: "INVALID_ARGUMENT", field: "--metric" } });
    expect(other.error.message).toContain("one that the evaluator measures: size");

    const mended = await run(args);
    expect(mended.code).toBe(0);
    // Nothing that was measured is better, and no branch says otherwise.
    expect(documents(mended.stdout).at(-1)).toMatchObject({
      stopped: "generations",
      start: { value: 3 },
      best: { commit_hash: git("rev-parse", "main"), island_id: null },
    });
    expect(git("branch", "--list", "evolution/best")).toBe("");
  });

  it("when an experiment's name stands for another goal", async () => {
    const named = example.evolve("--experiment", "of its own", "--goal", "Something else");
    const end = await run(named);
    expect(end).toMatchObject({ code: 3, error: { code: "IDEMPOTENCY_CONFLICT", field: "--experiment" } });
    expect(end.error.message).toContain("another commit or with another goal");
  });
});
