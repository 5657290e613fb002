import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { useTestDatabase } from "./support/oracle.js";

// Every example, as the real process its first lines describe.

const root = fileURLToPath(new URL("..", import.meta.url));

const db = useTestDatabase();

/** Runs an example to its end; an exit code other than 0 is thrown with what it printed. */
function run(example: string): Promise<string> {
  const args = ["--import", "jiti/register", `examples/${example}`];
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: db.url };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: root, env }, (failure, stdout, stderr) => {
      if (failure) reject(new Error(`${example} ended with ${failure.code}:\n${stdout}${stderr}`));
      else resolve(stdout);
    });
  });
}

describe("examples", { timeout: 90_000 }, () => {
  it("quickstart: one job however often it is run", async () => {
    expect(await run("quickstart.ts")).toBe("new job, 4 words\n");
    expect(await run("quickstart.ts")).toBe("known job, 4 words\n");
  });

  it("transactional-enqueue: the rolled back job does not exist", async () => {
    expect(await run("transactional-enqueue.ts")).toBe("committed: welcome, ada\nrolled back: no such job\n");
  });

  it("retries: each throw has its own end", async () => {
    expect((await run("retries.ts")).trim().split("\n")).toEqual([
      "busy: SUCCEEDED after FAILED (HANDLER_ERROR), SUCCEEDED; 0 at no cost",
      "refuses: FAILED_TERMINAL after FAILED (HANDLER_ERROR); 0 at no cost",
      "not_yet: SUCCEEDED after RELEASED (SNOOZED), SUCCEEDED; 1 at no cost",
    ]);
  });

  it("sql-enqueue: the same SQL twice is the same job", async () => {
    const result = "{ bullets: [ 'Leases belong to attempts.' ] }\n";
    expect(await run("sql-enqueue.ts")).toBe(`new job\n${result}`);
    expect(await run("sql-enqueue.ts")).toBe(`the same job again\n${result}`);
  });

  it("all have a test here, fit on a screen, and say how to run them", () => {
    const tests = readFileSync(fileURLToPath(import.meta.url), "utf8");
    // Those in a folder have a test file of their own.
    const files = readdirSync(`${root}/examples`, { withFileTypes: true }).filter((entry) => entry.isFile());
    for (const { name } of files) {
      const text = readFileSync(`${root}/examples/${name}`, "utf8");
      if (name.endsWith(".ts")) expect(tests).toContain(`run("${name}")`);
      expect(text.split("\n").length, `lines of ${name}`).toBeLessThanOrEqual(50);
      expect(text.split("\n").slice(0, 3).join("\n")).toContain(`examples/${name}`);
    }
  });
});
