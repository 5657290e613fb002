import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { runToEnd } from "./support/cli.js";
import { echo, flaky } from "./support/jobs.js";
import { useTestDatabase } from "./support/oracle.js";

// The built program as a process of its own, as scripts call it.

const db = useTestDatabase();
let env: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "oracle-worker-cli-"));
beforeAll(async () => {
  env = { DATABASE_URL: db.url };
  await db.worker({ jobs: [echo, flaky], queues: ["served"] });
});

const cli = (...args: string[]) => runToEnd(args, { env });
const enqueue = (...args: string[]) => cli("enqueue", "echo", "--input", '{"n": 1}', ...args);
const idOf = ({ json }: { json: Record<string, unknown> }) => String(json.job_id);

describe("enqueue", () => {
  it("stores one job as the flags say", async () => {
    const flags = [
      "--queue",
      "idle",
      "--priority",
      "-7",
      "--tenant",
      "acme",
      "--max-attempts",
      "5",
      "--timeout",
      "2m",
    ];
    const { code, json } = await enqueue(
      ...flags,
      "--run-after",
      "+1h",
      "--deadline",
      "2099-01-31T08:00:00+02:00",
    );
    expect(code).toBe(0);
    expect(json).toMatchObject({
      type: "echo",
      state: "PENDING",
      created: true,
      joined: null,
      queue: "idle",
    });
    expect(json).toMatchObject({ priority: -7, tenant_id: "acme", max_attempts: 5, timeout_seconds: 120 });
    expect(json.deadline).toBe("2099-01-31T06:00:00.000Z");
    const delay = Date.parse(String(json.run_after)) - Date.parse(String(json.created_at));
    expect(delay / 1000).toBeCloseTo(3600, 0);
  });

  it("counts a relative deadline by the database's clock", async () => {
    const { json } = await enqueue("--queue", "idle", "--deadline", "+1h");
    expect((Date.parse(String(json.deadline)) - Date.parse(String(json.created_at))) / 1000).toBeCloseTo(
      3600,
      0,
    );
  });

  it("takes the input from a file and from standard input", async () => {
    const file = join(folder, "input.json");
    writeFileSync(file, '\ufeff{"n": 2}\n');
    const fromFile = await cli("enqueue", "echo", "--queue", "idle", "--input", `@${file}`);
    const fromPipe = await runToEnd(["enqueue", "echo", "--queue", "idle", "--input", "-"], {
      env,
      stdin: '{"n":2}',
    });
    expect(fromFile.json.spec_hash).toBe(fromPipe.json.spec_hash);
  });

  it("gives the same job for the same key, and refuses the key for another input", async () => {
    const first = await enqueue("--queue", "idle", "--key", "doc-42");
    const again = await enqueue("--queue", "idle", "--key", "doc-42");
    expect(again.json).toMatchObject({ job_id: first.json.job_id, created: false, joined: "key" });
    const other = await cli("enqueue", "echo", "--input", '{"n": 2}', "--key", "doc-42");
    expect(other).toMatchObject({
      code: 3,
      stdout: "",
      error: { code: "IDEMPOTENCY_CONFLICT", field: "key" },
    });
    expect(other.error.message).toContain(idOf(first));
  });

  it("joins an unfinished twin, and a succeeded one", async () => {
    const input = ["enqueue", "echo", "--input", '{"n": 77}'];
    const first = await cli(...input, "--dedupe", "active", "--queue", "idle");
    const twin = await cli(...input, "--dedupe", "active", "--queue", "idle");
    expect(twin.json).toMatchObject({ job_id: idOf(first), created: false, joined: "active" });
    const done = await cli("enqueue", "echo", "--input", '{"n": 78}', "--queue", "served", "--wait");
    const reused = await cli("enqueue", "echo", "--input", '{"n": 78}', "--dedupe", "result", "--wait");
    expect(reused.json).toMatchObject({
      job_id: idOf(done),
      created: false,
      joined: "result",
      result: { n: 78 },
    });
  });

  it("waits for the result", async () => {
    const { code, json } = await enqueue("--queue", "served", "--wait");
    expect(code).toBe(0);
    expect(json).toMatchObject({ state: "SUCCEEDED", created: true, result: { n: 1 } });
  });

  it("ends with 1 and both the job and the error when the job fails", async () => {
    const input = '{"failures": 9, "how": "terminal"}';
    const end = await cli("enqueue", "flaky", "--queue", "served", "--input", input, "--wait", "20");
    expect(end.code).toBe(1);
    expect(end.json).toMatchObject({ state: "FAILED_TERMINAL", error: { message: "hopeless" } });
    expect(end.error.code).toBe("JOB_FAILED");
  });

  it("ends with 1 when the wait is over, and still says which job it is", async () => {
    const end = await enqueue("--queue", "idle", "--wait", "0.2");
    expect(end).toMatchObject({ code: 1, json: { state: "PENDING" }, error: { code: "WAIT_TIMEOUT" } });
  });
});

describe("enqueue --bulk", () => {
  const bulk = (text: string | Buffer, ...args: string[]) => {
    return runToEnd(["enqueue", ...args, "--bulk", "-"], { env, stdin: text });
  };

  it("stores a file's lines and counts what was there already", async () => {
    const file = join(folder, "jobs.ndjson");
    const lines = Array.from({ length: 4500 }, (_, n) =>
      JSON.stringify({ type: "echo", input: { n }, queue: "bulk" }),
    );
    writeFileSync(
      file,
      `${lines.join("\n")}\n\n{"type":"echo","input":{"n":0},"key":"b1","priority":9,"run_after":"+1h"}\n`,
    );
    const end = await cli("enqueue", "--bulk", file);
    expect(end).toMatchObject({ code: 0, json: { enqueued: 4501, existing: 0 }, stderr: "" });
    const again = await bulk('{"input":{"n":0},"key":"b1"}\n{"input":{"n":1}}', "echo", "--queue", "other");
    expect(again.json).toEqual({ enqueued: 1, existing: 1 });
    const rows = await db.sql(
      "SELECT queue_name, count(*)::int AS n FROM oracle.jobs WHERE queue_name IN ('bulk', 'other') GROUP BY 1",
    );
    expect(rows).toEqual(
      expect.arrayContaining([
        { queue_name: "bulk", n: 4500 },
        { queue_name: "other", n: 1 },
      ]),
    );
  });

  it("stores nothing of the chunk with the fault, and says what it stored before", async () => {
    const good = Array.from({ length: 2500 }, (_, n) => JSON.stringify({ input: { n } }));
    const end = await bulk([...good, '{"input": 1, "max_attempts": 0}'].join("\n"), "partly");
    expect(end).toMatchObject({ code: 2, stdout: "", error: { field: "line 2501: max_attempts" } });
    expect(end.error.message).toContain("max_attempts is 0; it must be a whole number from 1 to 1000.");
    expect(end.error.message).toContain("Lines 1 to 2000 were stored, nothing after them.");
    const [row] = await db.sql("SELECT count(*)::int AS n FROM oracle.jobs WHERE job_type = 'partly'");
    expect(row?.n).toBe(2000);
  });

  it("names the line whose key belongs to another job", async () => {
    const lines = '{"input": 1}\n{"input": 1, "key": "twice"}\n{"input": 2, "key": "twice"}\n';
    const end = await bulk(lines, "unkeyed");
    expect(end).toMatchObject({ code: 3, error: { code: "IDEMPOTENCY_CONFLICT" } });
    expect(end.error.message).toContain("Nothing was stored.");
    expect(await db.sql("SELECT 1 FROM oracle.jobs WHERE job_type = 'unkeyed'")).toEqual([]);
  });

  it.each([
    ["not JSON", '{"input": ', "INVALID_JSON", "$"],
    ["not an object", "[1]", "INVALID_ARGUMENT", "$"],
    ["no input", '{"type": "a"}', "INVALID_ARGUMENT", "input"],
    ["no type", '{"input": 1}', "INVALID_ARGUMENT", "type"],
    ["a misspelt field", '{"type": "a", "input": 1, "prioritty": 1}', "INVALID_ARGUMENT", "prioritty"],
    ["a wrong time", '{"type": "a", "input": 1, "run_after": "soon"}', "INVALID_ARGUMENT", "run_after"],
    ["NUL inside", '{"type": "a", "input": {"x": "\\u0000"}}', "PAYLOAD_REJECTED", "$.input.x"],
  ])("refuses a line with %s", async (_what, line, code, field) => {
    const end = await bulk(`{"type":"fine","input":1}\n${line}`);
    expect(end).toMatchObject({ code: 2, error: { code } });
    expect(end.error.field).toMatch(/^line 2: /);
    expect(end.error.field).toContain(field);
    expect(await db.sql("SELECT 1 FROM oracle.jobs WHERE job_type = 'fine'")).toEqual([]);
  });

  it("refuses bytes that are not UTF-8", async () => {
    const end = await bulk(Buffer.from([0x7b, 0xff, 0xfe, 0x0a]));
    expect(end).toMatchObject({ code: 2, error: { code: "INVALID_JSON" } });
  });
});
