import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { TestRepository } from "./support/evolution.js";
import { documents } from "./support/example-repository.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";

// `oracle-worker evolve` when something is in its way: real programs that hang, fail, are not there or take the repository along.

const db = useTestDatabase();
let env: Record<string, string>;
let repository: TestRepository;
beforeAll(() => {
  env = { DATABASE_URL: db.url, ARTIFACTS: `file:${db.artifacts}` };
});
beforeEach(() => {
  repository = new TestRepository({ "number.txt": "10\n" });
});
afterEach(() => repository.remove());

/** A program beside the repository; returns its path. */
function program(name: string, lines: string): string {
  const file = join(repository.home, name);
  writeFileSync(file, `#!/bin/sh\n${lines}\n`);
  chmodSync(file, 0o755);
  return file;
}

const measuring = `echo '{"summary": "read", "metrics": [{"name": "number", "value": '$(cat number.txt)'}]}'`;
const growing = "cat > /dev/null; echo $(($(cat number.txt) + 1)) > number.txt";
const failing = "cat > /dev/null; echo 'no model here' >&2; exit 7";

interface Given {
  agent?: string;
  evaluate?: string;
}

/** One generation of two jobs. */
function evolve({ agent, evaluate }: Given = {}, ...flags: string[]): string[] {
  return [
    ...["evolve", "--repo", repository.folder, "--goal", "Let the number grow"],
    ...["--agent", agent ?? program("agent.sh", growing)],
    ...["--evaluate", evaluate ?? program("evaluate.sh", measuring)],
    ...["--generations", "1", "--population", "2", ...flags],
  ];
}

const run = (args: string[], more: Record<string, string> = {}) =>
  runToEnd(args, { env: { ...env, ...more }, cwd: repository.home });

describe("evolve", { timeout: 240_000 }, () => {
  it("goes on after kill -9 while the start was measured", async () => {
    const begun = join(repository.home, "begun");
    const go = join(repository.home, "go");
    const evaluate = program(
      "evaluate.sh",
      `[ -e ${go} ] || { touch ${begun}; exec tail -f /dev/null; }\n${measuring}`,
    );
    const running = runCli(evolve({ evaluate }), { ...env, LEASE_SECONDS: "3" }, repository.home);
    await until("the evaluator to run", async () => existsSync(begun), 120_000);
    running.process.kill("SIGKILL");
    expect(await running.ended).toBe("SIGKILL");
    writeFileSync(go, "");
    const end = await run(evolve({ evaluate }), { LEASE_SECONDS: "3" });
    expect([end.code, end.stderr]).toEqual([0, ""]);
    expect(documents(end.stdout).at(-1)).toMatchObject({ stopped: "generations", succeeded: 2 });
  });

  it("tries anew what failed because a program was not there", async () => {
    const agent = program("agent.sh", growing);
    const away = join(repository.home, "away.sh");
    // Gone once the start is measured: later than any check.
    const evaluate = program("evaluate.sh", `[ ! -e ${agent} ] || mv ${agent} ${away}\n${measuring}`);
    const spoilt = await run(evolve({ agent, evaluate }));
    expect(documents(spoilt.stdout).at(-1)).toMatchObject({ succeeded: 0, failed: 2 });
    renameSync(away, agent);
    program("evaluate.sh", measuring);
    const end = await run(evolve({ agent, evaluate }));
    expect(end.code).toBe(0);
    expect(documents(end.stdout).at(-1)).toMatchObject({ succeeded: 2, failed: 0, best: { value: 11 } });
  });

  it("says so and ends with 1 when every job failed", async () => {
    const agent = program("agent.sh", failing);
    const end = await run(evolve({ agent }));
    expect(end.code).toBe(1);
    expect(documents(end.stdout).at(-1)).toMatchObject({ event: "ended", succeeded: 0, failed: 2 });
    const told = await runAsPerson(evolve({ agent }), { env, cwd: repository.home });
    expect(told.code).toBe(1);
    expect(told.stdout).toMatch(/^ {2}1\.1 {2}island-1 {2}FAILED_TERMINAL {2}HANDLER_EXITED: The agent /m);
    expect(told.stdout.trimEnd().split("\n").at(-1)).toMatch(/^Every job failed; nothing was better than/);
  });

  it("shows on a terminal why jobs failed", async () => {
    const agent = program("agent.sh", failing);
    const inTerminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    const args = ["-c", inTerminal, process.execPath, "dist/cli/main.js", ...evolve({ agent })];
    const terminal = { PATH: process.env.PATH, HOME: process.env.HOME, ...env, TERM: "xterm", NO_COLOR: "1" };
    const failure = await promisify(execFile)("python3", args, { env: terminal }).catch((error) => error);
    expect(failure.code).toBe(1);
    const screen = failure.stdout.replaceAll("\r", "").split("\u001b[J").at(-1);
    expect(screen).toMatch(/^GENERATION/);
    expect(screen).toMatch(/^ {2}1\.1 {2}island-1 {2}FAILED_TERMINAL {2}HANDLER_EXITED: The agent /m);
    expect(screen).toMatch(/^ {2}1\.2 {2}island-2 {2}FAILED_TERMINAL {2}HANDLER_EXITED: The agent /m);
  });

  it("ends with the repository's own error when that is deleted in the middle", async () => {
    const agent = program("agent.sh", `cat > /dev/null; rm -rf ${repository.folder}`);
    const end = await run(evolve({ agent }));
    expect(end).toMatchObject({ code: 1, error: { code: "EVOLUTION_REPOSITORY" } });
    expect(end.error.message).toContain(`${repository.folder} is gone`);
  });

  it("moves its branch from a commit that has a card, though the jobs' branches were deleted", async () => {
    expect((await run(evolve())).code).toBe(0);
    for (const job of repository.branches().keys()) repository.git("branch", "-D", `evolution/job/${job}`);
    const end = await run(evolve({}, "--experiment", "another"));
    expect([end.code, end.stderr]).toEqual([0, ""]);
    const ended = documents(end.stdout).at(-1);
    expect(repository.git("rev-parse", "evolution/best")).toBe(ended?.best.commit_hash);
  });

  it("says what to do when its branch gets checked out in the middle", async () => {
    const out = `git -C ${repository.folder} checkout --quiet -B evolution/best`;
    const end = await run(evolve({ agent: program("agent.sh", `${growing}; ${out}`) }));
    expect(end).toMatchObject({ code: 3, error: { code: "EVOLUTION_BRANCH", field: "--branch" } });
    expect(end.error.message).toMatch(/is checked out.*check out another branch there and run again/);
    repository.git("checkout", "--quiet", "main");
    expect((await run(evolve())).code).toBe(0);
  });

  it("has one island for a population of one", async () => {
    const end = await run(evolve({}, "--population", "1"));
    expect([end.code, end.stderr]).toEqual([0, ""]);
    expect(documents(end.stdout).at(-1)).toMatchObject({ jobs: 1, best: { island_id: "island-1" } });
  });

  it("says that the budget has cut the last generation, also when asked again", async () => {
    for (const _run of [1, 2]) {
      const end = await run(evolve({}, "--max-jobs", "1"));
      expect(documents(end.stdout).at(-1)).toMatchObject({ stopped: "budget", generations: 1, jobs: 1 });
    }
    const whole = await run(evolve({}, "--max-jobs", "2", "--experiment", "whole"));
    expect(documents(whole.stdout).at(-1)).toMatchObject({ stopped: "generations", jobs: 2 });
  });
});

describe("evolve refuses a program that is not there:", { timeout: 120_000 }, () => {
  it.each<[string, string[]]>([
    ["--agent", ["--agent", "no-such-agent --edit"]],
    ["--agent", ["--agent", "/no/such/agent"]],
    ["--evaluate", ["--evaluate", "no-such-evaluator"]],
    ["--planner", ["--planner", "./no-such-planner"]],
  ])("%s in %j", async (field, flags) => {
    const end = await run([...evolve(), ...flags]);
    expect(end).toMatchObject({ code: 2, stdout: "", error: { code: "INVALID_ARGUMENT", field } });
    expect(end.error.message).toContain(`${field} starts `);
    expect(
      await db.sql("SELECT 1 FROM oracle.jobs WHERE input_payload ->> 'repository' = $1", [
        repository.folder,
      ]),
    ).toEqual([]);
  });

  it("a path is one in the checkout, as the programs are started there", async () => {
    mkdirSync(join(repository.home, "tools"));
    writeFileSync(join(repository.home, "tools/agent"), `#!/bin/sh\n${growing}\n`, { mode: 0o755 });
    const outside = await run(evolve({ agent: "tools/agent" }));
    expect(outside).toMatchObject({ code: 2, error: { code: "INVALID_ARGUMENT", field: "--agent" } });
    expect(outside.error.message).toContain("name a file outside of it in full");
    mkdirSync(join(repository.folder, "tools"));
    writeFileSync(join(repository.folder, "tools/agent"), `#!/bin/sh\n${growing}\n`, { mode: 0o755 });
    repository.git("add", "--all");
    repository.git("commit", "--quiet", "--message=Tools");
    expect((await run(evolve({ agent: "tools/agent" }))).code).toBe(0);
  });
});
