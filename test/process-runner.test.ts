import { existsSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { isAlive, pidsIn } from "./support/attempt.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { newFile, program, programJob, workerOf } from "./support/programs.js";

// Programs that run once per attempt. Whatever one of them does, the worker goes on with the next.

const db = useTestDatabase();
const node = [process.execPath, program("one-shot.mjs")] as [string, string];
const python = ["python3", program("one-shot.py")] as [string, string];
const canary = "canary-in-the-worker";

let bench: Awaited<ReturnType<typeof workerOf>>;
beforeAll(async () => {
  bench = await workerOf(db, [
    programJob("program", node),
    programJob("python", python),
    programJob("allowed", node, { env: ["ORACLE_TEST_ALLOWED"] }),
    programJob("elsewhere", node, { cwd: program("") }),
    programJob("from_folder", ["./one-shot.mjs"], { cwd: program("") }),
    programJob("missing", ["no-such-program", "--flag"]),
    programJob("nowhere", node, { cwd: "/no/such/folder" }),
  ]);
});

const succeeds = { state: "SUCCEEDED", result: "good" };
const afterwards = async () => expect(await bench.run("program", { how: "good" })).toMatchObject(succeeds);
const failsWith = (code: string, message: string | RegExp, retryable = true) => ({
  state: "FAILED_TERMINAL",
  error: { code, message: expect.stringMatching(message), retryable },
});

describe("an answer", () => {
  const ok = (result: string) => `{"ok": true, "result": ${result}}`;
  const failed = (error: string, code: number) => ({ stdout: `{"ok": false, "error": ${error}}`, code });

  it.each([
    ["partial JSON", { stdout: '{"ok": true, "res' }, "HANDLER_PROTOCOL", /not JSON/],
    ["two envelopes", { stdout: `${ok("1")}\n${ok("2")}\n` }, "HANDLER_PROTOCOL", /end of the text/],
    ["no envelope", { stdout: '["ok"]' }, "HANDLER_PROTOCOL", /no object/],
    ["wrong shape: no result", { stdout: '{"ok": true}' }, "HANDLER_PROTOCOL", /wrong shape/],
    ["wrong shape: usage", { stdout: '{"ok": true, "result": 1, "usage": 7}' }, "HANDLER_PROTOCOL", /shape/],
    [
      "of another attempt",
      { stdout: '{"attempt_id": "x", "ok": true, "result": 1}' },
      "HANDLER_PROTOCOL",
      /another/,
    ],
    [
      "exits 1 with ok:true",
      { stdout: ok("1"), code: 1 },
      "HANDLER_PROTOCOL",
      /success, but ended with exit code 1/,
    ],
    ["nothing at all", { stdout: "" }, "HANDLER_EXITED", /exit code 0 without an answer/],
    ["partial JSON and exit 3", { stdout: "{", code: 3 }, "HANDLER_EXITED", /exit code 3/],
    [
      "exits 1 with ok:false of the wrong shape",
      failed('{"message": "no", "retryable": "yes"}', 1),
      "HANDLER_EXITED",
      /exit code 1 with an answer .* wrong shape, at error\.retryable/,
    ],
    [
      "exits 1 with a raw NUL in its answer",
      { hex: Buffer.from(failed('{"message": "a\0b"}', 1).stdout).toString("hex"), code: 1 },
      "HANDLER_EXITED",
      /exit code 1 with an answer .* not JSON/,
    ],
    ["exits 0 with ok:false", failed('{"message": "no"}', 0), "HANDLER_ERROR", /^no$/],
    ["exits 1 with ok:false", failed('{"class": "Busy", "message": "no"}', 1), "HANDLER_ERROR", /^no$/],
    [
      "error text with NUL",
      failed('{"message": "a\\u0000b\\ud800c"}', 1),
      "HANDLER_ERROR",
      /^a\ufffdb\ufffdc$/,
    ],
  ])("%s", async (_, input, code, message) => {
    expect(await bench.run("program", { how: "say", ...input })).toMatchObject(failsWith(code, message));
    await afterwards();
  });

  it.each([
    ["NaN", { stdout: ok("NaN") }],
    ["a number too large for a double", { stdout: ok("[1e400]") }],
    ["an integer that would change", { stdout: ok("9007199254740993") }],
    ["half of a surrogate pair", { stdout: ok('"\\ud800"') }],
    ["a NUL", { stdout: ok('"\\u0000"') }],
    ["text that is not UTF-8", { hex: Buffer.from(ok('"\xff"'), "latin1").toString("hex") }],
  ])("that holds %s is refused for good", async (_, input) => {
    const job = await bench.run("program", { how: "say", ...input }, { maxAttempts: 3 });
    expect(job).toMatchObject({ ...failsWith("OUTPUT_REJECTED", "", false), attemptCount: 1 });
  });

  it("may carry usage and metrics", async () => {
    const stdout =
      '{"ok": true, "result": "good", "usage": {"tokens": 1, "cost": 0.5}, "metrics": {"ms": 2}}\n';
    const job = await bench.run("program", { how: "say", stdout });
    expect(job).toMatchObject(succeeds);
    expect(await db.oracle.attempts(job.jobId as string)).toMatchObject([{ tokens: 1, cost: 0.5 }]);
  });

  it("may carry usage with an error too", async () => {
    const stdout = '{"ok": false, "error": {"message": "no", "retryable": false}, "usage": {"tokens": 3}}\n';
    const job = await bench.run("program", { how: "say", stdout });
    expect(await db.oracle.attempts(job.jobId as string)).toMatchObject([{ status: "FAILED", tokens: 3 }]);
  });

  it("an error says itself whether to try again and when", async () => {
    const says = (retryable: boolean) => ({
      how: "say",
      stdout: `{"ok": false, "error": {"class": "Busy", "message": "full", "retryable": ${retryable}, "traceback": "line 7"}}`,
    });
    expect(await bench.run("program", says(false), { maxAttempts: 2 })).toMatchObject({
      attemptCount: 1,
      error: { code: "HANDLER_ERROR", name: "Busy", message: "full", retryable: false, stack: "line 7" },
    });
    expect(await bench.run("program", says(true), { maxAttempts: 2 })).toMatchObject({ attemptCount: 2 });
  });

  it("a Python program's traceback is in the error", async () => {
    const job = await bench.run("python", { how: "raise" });
    expect(job).toMatchObject(
      failsWith("HANDLER_EXITED", /exit code 1 without an answer: ValueError: the model file is gone$/),
    );
    expect(job.error?.stack).toMatch(/^Traceback .*one-shot\.py", line \d+/s);
  });
});

describe("a program that", () => {
  it("writes 1 GB of stdout is killed, and nothing of it is kept", async () => {
    const before = process.memoryUsage().rss;
    const file = newFile();
    const job = await bench.run("program", { how: "flood", fd: 1, megabytes: 1024, file });
    expect(job).toMatchObject(failsWith("OUTPUT_REJECTED", /more than 1048576 bytes/, false));
    expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(200);
    expect((await pidsIn(file)).filter(isAlive)).toEqual([]);
    await afterwards();
  });

  it("writes 200 MB of stderr succeeds", async () => {
    const before = process.memoryUsage().rss;
    expect(await bench.run("program", { how: "flood", fd: 2, megabytes: 200 })).toMatchObject({
      result: "flooded",
    });
    expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(150);
  });

  it("closes stdout and lives on is ended", async () => {
    const file = newFile();
    const job = await bench.run("program", { how: "closeStdout", file });
    expect(job).toMatchObject(failsWith("HANDLER_PROTOCOL", /closed stdout and did not end/));
    expect((await pidsIn(file)).filter(isAlive)).toEqual([]);
    await afterwards();
  });

  it("ignores TERM is killed before its attempt ends with TIMEOUT", async () => {
    const file = newFile();
    const job = await bench.run("program", { how: "ignoreTerm", file }, { timeoutSeconds: 1 });
    expect(job).toMatchObject(failsWith("TIMEOUT", /timeout/));
    expect((await pidsIn(file)).filter(isAlive)).toEqual([]);
    await afterwards();
  });

  it("is cancelled ends at once, and the job is CANCELLED", async () => {
    const file = newFile();
    const job = await bench.enqueue("program", { how: "stay", file });
    const [pid] = await pidsIn(file);
    const cancelledAt = performance.now();
    await job.cancel();
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
    expect(performance.now() - cancelledAt).toBeLessThan(2000);
    expect(isAlive(pid as number)).toBe(false);
    await afterwards();
  });

  it("is not there ends the job for good, and the error names it", async () => {
    const job = await bench.run("missing", {}, { maxAttempts: 3 });
    expect(job).toMatchObject({
      ...failsWith("HANDLERS_INVALID", /"no-such-program"/, false),
      attemptCount: 1,
    });
    expect(await bench.run("nowhere", {})).toMatchObject(
      failsWith("HANDLERS_INVALID", /no\/such\/folder/, false),
    );
    await afterwards();
  });

  it("is given input or gives output that breaks its schema ends the job for good", async () => {
    const { defineJob } = await import("oracle-worker");
    const { z } = await import("zod");
    const picky = defineJob({
      type: "picky",
      input: z.object({ how: z.string() }),
      output: z.number(),
      executable: node,
    });
    const other = await workerOf(db, [picky]);
    expect(await other.run("picky", { how: 1 })).toMatchObject(failsWith("INPUT_INVALID", "", false));
    expect(await other.run("picky", { how: "good" })).toMatchObject(failsWith("OUTPUT_INVALID", "", false));
  });
});

describe("what a program gets", () => {
  it("is an environment of named variables only", async () => {
    const secrets = { DATABASE_URL: canary, NODE_OPTIONS: "--no-warnings", ORACLE_TEST_ALLOWED: "yes" };
    const before = { ...process.env };
    Object.assign(process.env, secrets);
    try {
      const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"].filter(
        (name) => process.env[name],
      );
      const names = [...inherited, "PYTHONPATH"];
      expect((await bench.run("program", { how: "environment" })).result).toEqual(names.sort());
      expect((await bench.run("allowed", { how: "environment" })).result).toEqual(
        [...names, "ORACLE_TEST_ALLOWED"].sort(),
      );
    } finally {
      for (const name of Object.keys(secrets)) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    }
  });

  it("is its folder, where a relative program is looked for too", async () => {
    const folder = program("").replace(/\/$/, "");
    expect((await bench.run("elsewhere", { how: "folder" })).result).toBe(folder);
    expect((await bench.run("from_folder", { how: "folder" })).result).toBe(folder);
  });

  it.skipIf(!existsSync("/proc/self/cmdline"))(
    "is its payload on stdin: /proc shows it to nobody",
    async () => {
      const file = newFile();
      const job = await bench.enqueue("program", { how: "stay", file, secret: canary });
      const [pid] = await pidsIn(file);
      const shown = ["cmdline", "environ"].map((name) => readFileSync(`/proc/${pid}/${name}`, "latin1"));
      expect(shown[0]).toContain("one-shot.mjs");
      expect(shown.join()).not.toContain(canary);
      expect(shown.join()).not.toContain(job.id);
      await job.cancel();
      await until("its end", async () => !isAlive(pid as number));
    },
  );
});
