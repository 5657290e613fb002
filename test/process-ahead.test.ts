import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { LeaseLost } from "../dist/core/errors.js";
import type { JsonValue } from "../dist/core/json.js";
import type { ProcessOptions } from "../dist/handlers/define.js";
import { ProcessRunner } from "../dist/handlers/process/process-runner.js";
import { attempt, isAlive } from "./support/attempt.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { newFile, program, programJob, workerOf } from "./support/programs.js";

// Requests that are written to a child before it has answered the one it serves. Whatever becomes of that one, those
// behind it have not begun: they are not charged, and where they are told to end they never run.

const db = useTestDatabase();
const runner = new ProcessRunner();
afterAll(() => runner.close());

/** A program that notes what it gets and begins; one child, whose requests are sent ahead because it is quick. */
async function quickChild(options: ProcessOptions = {}) {
  const notes = newFile();
  const gate = newFile();
  const executable: [string, ...string[]] = [process.execPath, program("ahead.mjs"), notes];
  const job = programJob("ahead", executable, { warm: 1, ...options });
  const start = (input: JsonValue, signal?: AbortSignal) =>
    attempt(runner, job, input, signal ? { signal } : {});
  await until("requests to be sent ahead", async () => {
    const jobs = Array.from({ length: 50 }, () => start({ how: "quick" }).result);
    return (await Promise.all(jobs)).some((behind) => (behind as number) > 3);
  });
  const noted = (what: string) =>
    until(`"${what}" in the notes`, async () => {
      try {
        const line = readFileSync(notes, "utf8")
          .split("\n")
          .find((each) => each.startsWith(`${what} `));
        return line !== undefined && Number(line.split(" ")[2]);
      } catch {
        return false;
      }
    });
  const names = (what: string) =>
    readFileSync(notes, "utf8")
      .split("\n")
      .filter((line) => line.startsWith(`${what} `))
      .map((line) => line.split(" ")[1]);
  const hold = (name: string) => start({ how: "hold", name, until: gate }).result;
  return { job, start, hold, noted, names, release: () => writeFileSync(gate, "") };
}

describe("a child with requests ahead", () => {
  it("begins them in their order, and each attempt has its own stderr", async () => {
    const { start, names } = await quickChild();
    const jobs = Array.from({ length: 60 }, (_, n) => start({ how: "stderr", name: `n${n}`, n }));
    await Promise.all(jobs.map(({ result }) => result));
    expect(names("begun")).toEqual(jobs.map((_, n) => `n${n}`));
    expect(jobs.map(({ heard }) => heard.artifacts.map(({ content }) => content))).toEqual(
      jobs.map((_, n) => [`of ${n}\n\x1enot a mark`]),
    );
  });

  it("that is killed: the job it had begun pays, the others run elsewhere", async () => {
    const { start, hold, noted, names, release } = await quickChild();
    const begun = hold("begun");
    const others = ["b", "c"].map((name) => start({ how: "quick", name }).result);
    await noted("begun begun");
    const pid = await noted("got c");
    process.kill(pid, "SIGKILL");
    await expect(begun).rejects.toMatchObject({ code: "HANDLER_EXITED" });
    expect(await Promise.all(others)).toEqual([expect.any(Number), expect.any(Number)]);
    expect(names("begun")).toEqual(["begun", "b", "c"]);
    expect(await noted("begun b")).not.toBe(pid);
    release();
  });

  it("that takes too much memory: the job it had begun pays, the others run elsewhere", async () => {
    const { start, noted } = await quickChild({ memoryMb: 300 });
    const greedy = start({ how: "hog", name: "greedy" }).result;
    const others = ["b", "c"].map((name) => start({ how: "quick", name }).result);
    await expect(greedy).rejects.toMatchObject({ code: "MEMORY_LIMIT" });
    await Promise.all(others);
    expect(await noted("begun b")).not.toBe(await noted("begun greedy"));
  });

  it.each([
    ["cancelled", new Error("cancelled")],
    ["whose lease is lost", new LeaseLost("job", "it ran out")],
  ])("one that is %s while it lies there is not begun", async (_, reason) => {
    const { start, hold, noted, names, release } = await quickChild();
    const holding = hold("begun");
    const controller = new AbortController();
    const stopped = start({ how: "quick", name: "stopped" }, controller.signal).result;
    const after = start({ how: "quick", name: "after" }).result;
    await noted("got after");
    controller.abort(reason);
    await expect(stopped).rejects.toBe(reason);
    release();
    expect(await holding).toBe("held");
    await after;
    expect(names("begun")).toEqual(["begun", "after"]);
  });

  it("that gives back what it never had is replaced", async () => {
    const { start } = await quickChild();
    const wrong = start({ how: "otherReturned" }).result;
    await expect(wrong).rejects.toMatchObject({ code: "HANDLER_PROTOCOL" });
    expect(await start({ how: "quick" }).result).toBe(0);
  });

  it("a timeout counts from the beginning, a deadline from the start", async () => {
    const { job, noted } = await quickChild();
    const gate = newFile();
    const bench = await workerOf(db, [job], { concurrency: 20 });
    await until("requests to be sent ahead", async () => {
      const jobs = Array.from({ length: 50 }, () => bench.run("ahead", { how: "quick" }));
      return (await Promise.all(jobs)).some(({ result }) => (result as number) > 3);
    });
    const holding = await bench.enqueue("ahead", { how: "hold", name: "held", until: gate });
    await noted("begun held");
    const patient = await bench.enqueue("ahead", { how: "quick", name: "patient" }, { timeoutSeconds: 1 });
    const deadline = new Date(Date.now() + 3000);
    const hurried = await bench.enqueue("ahead", { how: "quick", name: "hurried" }, { deadline });
    expect(await db.oracle.wait(hurried.id, { timeoutSeconds: 25 })).toMatchObject({
      error: { code: "DEADLINE_EXCEEDED" },
    });
    writeFileSync(gate, "");
    for (const { id } of [holding, patient]) {
      expect(await db.oracle.wait(id, { timeoutSeconds: 25 })).toMatchObject({ state: "SUCCEEDED" });
    }
  });
});

describe("in Python", () => {
  const file = fileURLToPath(new URL("./support/ahead.py", import.meta.url));
  const python = (warm: number) => programJob("ahead", ["python3", file], { warm });
  const quick = (job: ReturnType<typeof python>, count: number) =>
    Promise.all(Array.from({ length: count }, () => attempt(runner, job, { how: "quick" }).result));

  it("each attempt has its own stderr, half a line too", async () => {
    const job = python(2);
    await quick(job, 50);
    const jobs = Array.from({ length: 100 }, (_, n) => attempt(runner, job, { how: "words", n }));
    await Promise.all(jobs.map(({ result }) => result));
    expect(jobs.map(({ heard }) => heard.artifacts.map(({ content }) => content))).toEqual(
      jobs.map((_, n) => [`!of ${n}`]),
    );
  });

  it("what lies behind a long job goes to another child", async () => {
    const job = python(2);
    const gate = newFile();
    const pids = new Set(await quick(job, 200));
    expect(pids.size).toBe(2);
    const holding = attempt(runner, job, { how: "hold", until: gate }).result;
    expect(new Set(await quick(job, 200)).size).toBeLessThanOrEqual(2);
    writeFileSync(gate, "");
    expect(await holding).toBeNull();
  });

  it("a job that dies takes no other with it", async () => {
    const job = python(1);
    const [before] = await quick(job, 100);
    const dying = attempt(runner, job, { how: "die" }).result;
    const others = quick(job, 50);
    await expect(dying).rejects.toMatchObject({ code: "HANDLER_EXITED" });
    expect(new Set(await others).has(before)).toBe(false);
    expect(isAlive(before as number)).toBe(false);
  });

  it("one that is told to end does not run, even behind a handler that lets nothing else run", async () => {
    const job = python(1);
    const notes = newFile();
    await quick(job, 100);
    const busy = attempt(runner, job, { how: "hold_the_interpreter" }).result;
    const controller = new AbortController();
    const { signal } = controller;
    const stopped = attempt(runner, job, { how: "note", file: notes, name: "stopped" }, { signal }).result;
    const after = attempt(runner, job, { how: "note", file: notes, name: "after" }).result;
    controller.abort(new Error("cancelled"));
    await expect(stopped).rejects.toThrow("cancelled");
    await Promise.all([busy, after]);
    expect(readFileSync(notes, "utf8")).toBe("after\n");
  });
});
