import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runToEnd } from "./support/cli.js";

// Without any settings the commands share one embedded Postgres, made, migrated, started and stopped for them.

const cwd = mkdtempSync(join(tmpdir(), "oracle-worker-cli-"));
// The account that runs Postgres for root must be able to come here.
chmodSync(cwd, 0o755);
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

it("serves commands that follow each other and commands at the same time", async () => {
  const first = await runToEnd(["enqueue", "t", "--input", "1"], { cwd });
  expect(first).toMatchObject({ code: 0, stderr: "", json: { created: true } });
  const [list, show, status] = await Promise.all([
    runToEnd(["jobs", "list"], { cwd }),
    runToEnd(["jobs", "show", String(first.json.job_id)], { cwd }),
    runToEnd(["migrate", "verify"], { cwd }),
  ]);
  expect(list.json.items).toMatchObject([{ job_id: first.json.job_id }]);
  expect(show).toMatchObject({ code: 0, json: { state: "PENDING", input: 1 } });
  expect(status).toMatchObject({ code: 0, json: { differences: [] } });
}, 60_000);
