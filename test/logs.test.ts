import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";

// What a worker writes: for machines one JSON document per line, for people something shorter. Secrets: redaction.test.ts.

const db = useTestDatabase();
const drain = (queue: string) => ["work", "--handlers", handlers, "--queues", queue, "--drain"];

it("each line is one JSON document, and tells worker, job, attempt and tenant by their ids", async () => {
  const queue = "lines";
  const job = await db.oracle.enqueue("quick", { n: 1 }, { queue, tenant: "team-a" });
  const wrong = await db.oracle.enqueue("quick", { n: "none" }, { queue, tenant: "team-b" });
  const worker = runCli(drain(queue), { DATABASE_URL: db.url, LOG_LEVEL: "debug" });
  expect(await worker.ended).toBe(0);
  const lines = worker
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const [attempt] = await db.oracle.attempts(job.id);
  const ids = {
    worker_id: attempt?.workerId,
    job_id: job.id,
    attempt_id: attempt?.attemptId,
    attempt_no: 1,
    tenant_id: "team-a",
  };
  expect(lines).toContainEqual(expect.objectContaining({ event: "job.started", ...ids }));
  expect(lines).toContainEqual(expect.objectContaining({ event: "job.settled", state: "SUCCEEDED", ...ids }));
  expect(lines).toContainEqual(
    expect.objectContaining({ event: "job.settled", level: 40, job_id: wrong.id, tenant_id: "team-b" }),
  );
  const events = lines.filter(({ event }) => event !== undefined);
  expect(events.length).toBeGreaterThan(5);
  for (const line of events) expect(line, line.event).toMatchObject({ worker_id: ids.worker_id });
});

it("on a terminal it is a time and a sentence", async () => {
  const queue = "terminal";
  await db.oracle.enqueue("quick", { n: "none" }, { queue });
  const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  const terminal = "import pty, sys; pty.spawn(sys.argv[1:])";
  const { stdout } = await promisify(execFile)(
    "python3",
    ["-c", terminal, process.execPath, main, ...drain(queue)],
    { env: { PATH: process.env.PATH, DATABASE_URL: db.url, NO_COLOR: "1" } },
  );
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d worker started, serves .*quick/m);
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d quick failed: INPUT_INVALID/m);
  expect(stdout).not.toContain('{"level"');
  expect(stdout).not.toContain("\u001b[");
});
