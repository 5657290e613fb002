import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JobDefinition } from "../dist/handlers/define.js";
import { loadHandlers } from "../dist/handlers/load.js";
import { ProcessRunner } from "../dist/handlers/process/process-runner.js";
import { attempt, isAlive } from "./support/attempt.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { program, workerOf } from "./support/programs.js";

// Handlers that are functions, in processes of their own.

const db = useTestDatabase();
let jobs: JobDefinition[];
let bench: Awaited<ReturnType<typeof workerOf>>;
const job = (type: string) => jobs.find((definition) => definition.type === type) as JobDefinition;
beforeAll(async () => {
  jobs = [
    ...(await loadHandlers(program("modules.mjs"))),
    ...(await loadHandlers(program("unloadable.mjs"))),
  ];
  bench = await workerOf(db, jobs, { concurrency: 10 });
});

describe("a handler in another process", () => {
  const runner = new ProcessRunner();
  afterAll(() => runner.close());

  it.each(["speaker", "warm_speaker"])("%s: has its context, and what it prints is its log", async (type) => {
    const { result, heard } = attempt(runner, job(type), { n: 7 });
    const returned = (await result) as { pid: number };
    expect(returned).toMatchObject({ kept: { artifact_id: "1", sha256: "2" }, attempt: 1 });
    expect(heard.progress).toEqual([[0.5, "half", undefined]]);
    expect(heard.log).toEqual([["info", "said", { n: 7 }]]);
    expect(heard.artifacts).toMatchObject([
      { name: "note", content: '{"n":7}' },
      { name: "stderr.log", content: "printed\nwritten\npast Node\ninherited\n" },
    ]);
    expect(returned.pid).not.toBe(process.pid);
    expect(isAlive(returned.pid)).toBe(type === "warm_speaker");
  });

  it("that cannot be loaded there ends the job for good and says why", async () => {
    expect(await bench.run("unloadable", {}, { maxAttempts: 3 })).toMatchObject({
      attemptCount: 1,
      error: { code: "HANDLERS_INVALID", message: expect.stringContaining("no such model") },
    });
  });

  it.runIf(process.platform === "linux")("that is refused memory for a buffer: MEMORY_LIMIT", async () => {
    expect(await bench.run("hoarder", {})).toMatchObject({ error: { code: "MEMORY_LIMIT" } });
  });

  it.each([
    ["throws a string", "string", { code: "HANDLER_ERROR", message: "just a string" }],
    [
      "throws a circular object",
      "circular",
      { code: "HANDLER_ERROR", message: expect.stringContaining("JSON") },
    ],
    ["returns a bigint", "bigint", { code: "OUTPUT_REJECTED", field: "$.n" }],
    ["returns what breaks its schema", "shape", { code: "OUTPUT_INVALID", field: "$.fine" }],
    ["ends its process", "exit", { code: "HANDLER_EXITED" }],
  ])("that %s has a typed error", async (_, how, error) => {
    expect(await bench.run("strict", { how })).toMatchObject({ state: "FAILED_TERMINAL", error });
    expect(await bench.run("strict", { how: "good" })).toMatchObject({ result: { fine: true } });
  });

  it("that is given bad input is not called", async () => {
    expect(await bench.run("strict", {})).toMatchObject({ error: { code: "INPUT_INVALID", field: "$.how" } });
  });

  it("may snooze", async () => {
    expect(await bench.run("strict", { how: "snooze" })).toMatchObject({
      state: "SUCCEEDED",
      attemptCount: 2,
    });
  });

  it("that loops for ever is killed at its timeout; the worker lives", async () => {
    const looping = await bench.run("strict", { how: "loop" }, { timeoutSeconds: 1 });
    expect(looping).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "TIMEOUT" } });
    expect(await bench.run("strict", { how: "good" })).toMatchObject({ state: "SUCCEEDED" });
  });
});

describe("an unhandled rejection, or an exit,", () => {
  it("after return costs no other job an attempt, however close they follow", async () => {
    const inputs = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? { n, breakAfterMs: 0 } : { n }));
    const ends = await Promise.all(inputs.map((input) => bench.run("warm_leaver", input)));
    expect(ends.map(({ error, attemptCount }) => [error, attemptCount])).toEqual(ends.map(() => [null, 1]));
    expect(ends.map(({ result }) => (result as { n: number }).n)).toEqual(inputs.map(({ n }) => n));
  });

  it.each(["breakAfterMs", "exitAfterMs"])(
    "of an earlier attempt (%s) does not touch the one that runs",
    async (what) => {
      const first = await bench.run("warm_leaver", { n: 1, [what]: 150 });
      const { pid } = first.result as { pid: number };
      const second = await bench.run("warm_leaver", { n: 2, runMs: 500 });
      expect(second).toMatchObject({ error: null, result: { pid } });
      await until("its end, after that", async () => !isAlive(pid));
      expect(await bench.run("warm_leaver", { n: 3 })).toMatchObject({ error: null, attemptCount: 1 });
    },
  );

  it("of the attempt that runs is its error", async () => {
    const ends = await bench.run("warm_leaver", { n: 4, breakAfterMs: 50, runMs: 10_000 });
    expect(ends.error).toMatchObject({
      code: "HANDLER_EXITED",
      message: "The handler left an error uncaught: left behind by 4",
    });
    expect(await bench.run("warm_leaver", { n: 5 })).toMatchObject({ error: null, attemptCount: 1 });
  });

  it("after return in a process for one attempt comes too late", async () => {
    expect(await bench.run("leaver", { n: 6, breakAfterMs: 0 })).toMatchObject({
      error: null,
      attemptCount: 1,
    });
  });
});

describe("a cancel", () => {
  it.each(["leaver", "warm_leaver"])("aborts the signal of a %s", async (type) => {
    const handle = await bench.enqueue(type, { n: 1, runMs: 60_000 });
    await until("it to run", async () => (await handle.state()) === "RUNNING");
    await handle.cancel();
    expect((await db.oracle.wait(handle.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
    expect(await bench.run(type, { n: 2 })).toMatchObject({ error: null });
  });
});
