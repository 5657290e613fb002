import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProcessRunner } from "../dist/handlers/process/process-runner.js";
import { attempt, isAlive, isReaped } from "./support/attempt.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { program, programJob, workerOf } from "./support/programs.js";

// Programs that serve many attempts, a line each way. Whatever one of them does, the next attempt has a good child.

const db = useTestDatabase();
const executable = [process.execPath, program("warm.mjs")] as [string, string];
const one = programJob("one", executable, { warm: 1 });

describe("in a worker", () => {
  let bench: Awaited<ReturnType<typeof workerOf>>;
  beforeAll(async () => {
    bench = await workerOf(db, [one, programJob("two", executable, { warm: 2 })], { concurrency: 20 });
  });
  const pid = async () => (await bench.run("one", { how: "pid" })).result as number;

  it("as many children as allowed serve every job, one at a time each", async () => {
    const jobs = await Promise.all(
      Array.from({ length: 12 }, () => bench.run("two", { how: "pid", ms: 20 })),
    );
    expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => "SUCCEEDED"));
    expect(new Set(jobs.map(({ result }) => result)).size).toBe(2);
  });

  it("the same child serves job after job", async () => {
    expect(await pid()).toBe(await pid());
    expect(await bench.run("one", { how: "plain" })).toMatchObject({ result: "without an id" });
  });

  it.each([
    ["two envelopes", { how: "two" }, "HANDLER_PROTOCOL", /more after its answer/],
    [
      "half a line after its answer",
      { how: "say", stdout: '{"ok":true,"result":1}\n{"o' },
      "HANDLER_PROTOCOL",
      /more/,
    ],
    [
      "the answer of another attempt",
      { how: "otherAttempt" },
      "HANDLER_PROTOCOL",
      /another attempt, "somebody"/,
    ],
    ["a line that is not JSON", { how: "say", stdout: "Loading…\n" }, "HANDLER_PROTOCOL", /not JSON/],
    ["a line of no known kind", { how: "say", stdout: '{"hello":1}\n' }, "HANDLER_PROTOCOL", /neither/],
    [
      "a message of the wrong shape",
      { how: "say", stdout: '{"log":{"level":"constructor"}}\n' },
      "HANDLER_PROTOCOL",
      /log/,
    ],
    [
      "an artifact without content",
      { how: "say", stdout: '{"artifact":{"id":1,"name":"a"}}\n' },
      "HANDLER_PROTOCOL",
      /a message of the wrong shape: artifact/,
    ],
    [
      "a message without its last part",
      { how: "say", stdout: '{"part":"{"}\n{"ok":true,"result":1}\n' },
      "HANDLER_PROTOCOL",
      /last part/,
    ],
    ["a line past the cap", { how: "flood" }, "OUTPUT_REJECTED", /more than 1048576 bytes/],
    ["nothing, and exits 0", { how: "exit", code: 0 }, "HANDLER_EXITED", /exit code 0/],
    ["nothing, and exits 9", { how: "exit", code: 9 }, "HANDLER_EXITED", /exit code 9/],
    ["nothing, and closes stdout", { how: "closeStdout" }, "HANDLER_PROTOCOL", /closed stdout/],
  ])("a child that says %s is replaced", async (_, input, code, message) => {
    const before = await pid();
    const error = { code, message: expect.stringMatching(message) };
    expect(await bench.run("one", input)).toMatchObject({ state: "FAILED_TERMINAL", error });
    expect(isAlive(before)).toBe(false);
    expect(await bench.run("one", { how: "good" })).toMatchObject({ error: null, result: "good" });
  });

  it("a line while idle: the answer stands, the child is replaced", async () => {
    const job = await bench.run("one", { how: "lateSecond" });
    expect(job.state).toBe("SUCCEEDED");
    await until("its end", async () => !isAlive(job.result as number));
    expect(await bench.run("one", { how: "good" })).toMatchObject({ error: null, result: "good" });
  });

  it("a child that dies while idle is replaced", async () => {
    const before = await pid();
    process.kill(before, "SIGKILL");
    await until("the worker, which is this process, to have noticed", async () => isReaped(before));
    expect(await bench.run("one", { how: "good" })).toMatchObject({ error: null, result: "good" });
  });

  it("a child that heeds a cancel stays; one that does not is killed; both jobs are CANCELLED", async () => {
    const before = await pid();
    for (const how of ["heed", "ignore"]) {
      const job = await bench.enqueue("one", { how });
      await until("it to run", async () => (await job.state()) === "RUNNING");
      await job.cancel();
      expect((await db.oracle.wait(job.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
      expect(isAlive(before)).toBe(how === "heed");
    }
    expect(await pid()).not.toBe(before);
  });

  it("a timeout ends in TIMEOUT", async () => {
    const job = await bench.run("one", { how: "heed" }, { timeoutSeconds: 1 });
    expect(job).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "TIMEOUT" } });
  });

  it("the time a job waits for a child does not count for its timeout, but for its deadline", async () => {
    const busy = await bench.enqueue("one", { how: "heed" });
    await until("it to run", async () => (await busy.state()) === "RUNNING");
    const [patient, hurried] = await Promise.all([
      bench.enqueue("one", { how: "pid", ms: 10 }, { timeoutSeconds: 2 }),
      bench.enqueue("one", { how: "good" }, { deadline: new Date(Date.now() + 3000) }),
    ]);
    expect(await db.oracle.wait(hurried.id, { timeoutSeconds: 20 })).toMatchObject({
      error: { code: "DEADLINE_EXCEEDED" },
    });
    expect(await patient.state()).toBe("RUNNING");
    await busy.cancel();
    expect(await db.oracle.wait(patient.id, { timeoutSeconds: 20 })).toMatchObject({ state: "SUCCEEDED" });
    // Once it has a child, it counts.
    expect(await bench.run("one", { how: "heed" }, { timeoutSeconds: 1 })).toMatchObject({
      error: { code: "TIMEOUT" },
    });
  });

  it("a job that waits for a child can be cancelled", async () => {
    const busy = await bench.enqueue("one", { how: "heed" });
    await until("it to run", async () => (await busy.state()) === "RUNNING");
    const waits = await bench.enqueue("one", { how: "good" });
    await until("it to run", async () => (await waits.state()) === "RUNNING");
    await waits.cancel();
    expect((await db.oracle.wait(waits.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
    expect(await busy.state()).toBe("RUNNING");
    await busy.cancel();
    expect((await db.oracle.wait(busy.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
  });

  it("a program that is not there ends each of the jobs that wait for it", async () => {
    const other = await workerOf(db, [programJob("gone", ["no-such-program"], { warm: 1 })]);
    const jobs = await Promise.all(Array.from({ length: 5 }, () => other.run("gone", {})));
    expect(jobs.map(({ error }) => error?.code)).toEqual(jobs.map(() => "HANDLERS_INVALID"));
  });

  it("children end with their worker", async () => {
    const other = await workerOf(db, [one]);
    const { result } = await other.run("one", { how: "pid" });
    expect(isAlive(result as number)).toBe(true);
    await other.worker.stop();
    expect(isAlive(result as number)).toBe(false);
  });
});

describe("what an attempt hands over", () => {
  const groups: string[] = [];
  const runner = new ProcessRunner({
    idleMs: 100,
    groups: { opened: (pid) => groups.push(`+${pid}`), closed: (pid) => groups.push(`-${pid}`) },
  });
  afterAll(() => runner.close());

  it("messages while it runs, with the answer to what it asked", async () => {
    const { result, heard } = attempt(runner, one, { how: "messages" });
    expect(await result).toEqual({
      reply: 7,
      ok: true,
      value: { artifact_id: "1", sha256: "2", size: 4 },
    });
    expect(heard.progress).toEqual([[0.5, "half", undefined]]);
    expect(heard.log).toEqual([["warn", "hm", { n: 1 }]]);
    expect(heard.artifacts).toEqual([{ name: "note", content: "kept", mediaType: "text/plain" }]);
  });

  it("a few artifacts at a time, however many it sends", async () => {
    const { result, heard } = attempt(runner, one, { how: "artifacts", count: 50 });
    expect(await result).toMatchObject({ reply: 50, ok: true });
    expect(heard.artifacts).toHaveLength(50);
    expect(heard.mostAtOnce).toBeLessThan(12);
  });

  it("its own stderr, and nobody else's", async () => {
    for (const n of [1, 2, 3]) {
      const { result, heard } = attempt(runner, one, { how: "stderr", n });
      await result;
      const mediaType = "text/plain; charset=utf-8";
      expect(heard.artifacts).toEqual([{ name: "stderr.log", content: `of ${n}`, mediaType }]);
    }
  });

  const once = programJob("once", [process.execPath, program("one-shot.mjs")]);

  it("stderr also when it fails, and no more of it than the cap", async () => {
    const failing = attempt(runner, once, { how: "say", stderr: "why", code: 1 });
    await expect(failing.result).rejects.toMatchObject({ code: "HANDLER_EXITED" });
    expect(failing.heard.artifacts).toMatchObject([{ name: "stderr.log", content: "why" }]);
    const flooding = attempt(runner, once, { how: "flood", fd: 2, megabytes: 3 });
    await flooding.result;
    const kept = flooding.heard.artifacts[0]?.content ?? "";
    expect(kept.length).toBeLessThan(1_050_000);
    expect(kept).toMatch(/x\n\[cut: 2097152 more bytes\]\n$/);
  });

  it("its outcome, even if its stderr cannot be kept", async () => {
    const input = { how: "say", stderr: "words", stdout: '{"ok":true,"result":"good"}' };
    expect(await attempt(runner, once, input, { refuseArtifacts: true }).result).toBe("good");
  });

  it("an error when a new child leaves instead of working", async () => {
    const fresh = programJob("fresh", executable, { warm: 1 });
    const { result } = attempt(runner, fresh, { how: "say", stdout: '{"leaving":true}\n' });
    await expect(result).rejects.toMatchObject({ code: "HANDLER_PROTOCOL" });
  });

  it("its process group, from the start to the end", async () => {
    const pid = (await attempt(runner, one, { how: "pid" }).result) as number;
    expect(groups).toContain(`+${pid}`);
    await until("the idle child's end", async () => groups.includes(`-${pid}`));
    expect(isAlive(pid)).toBe(false);
    expect(await attempt(runner, one, { how: "pid" }).result).not.toBe(pid);
  });
});
