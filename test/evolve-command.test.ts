import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runToEnd } from "./support/cli.js";
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
});
