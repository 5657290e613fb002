import { spawn } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { isAlive, pidsIn } from "./support/attempt.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";
import { newFile, program, programJob, workerOf } from "./support/programs.js";

// What a program takes with it and what it leaves behind.

const db = useTestDatabase();
const python = ["python3", program("one-shot.py")] as [string, string];
const inShell = ["sh", "-c", '"$0" "$@"; exit $?', ...python] as [string, ...string[]];
const left = newFile();
const leftByCancelled = newFile();
const isLinux = process.platform === "linux";

let bench: Awaited<ReturnType<typeof workerOf>>;
beforeAll(async () => {
  bench = await workerOf(db, [
    programJob("small", python, { memoryMb: 64 }),
    programJob("small_in_shell", inShell, { memoryMb: 64 }),
    programJob("quick", python, { cpuSeconds: 1 }),
    programJob("quick_in_shell", inShell, { cpuSeconds: 1 }),
    programJob("forks", ["sh", program("grandchildren.sh"), left]),
    programJob("forks_and_stays", ["sh", program("grandchildren.sh"), leftByCancelled, "stay"]),
  ]);
});
const good = { state: "SUCCEEDED", result: "good" };

describe.runIf(isLinux)("a program that", () => {
  it.each([
    ["allocates until it is killed", "small", { how: "allocate" }, /memory.* 64 MB/],
    ["asks for a gigabyte at once", "small", { how: "reserve" }, /limit of 64 MB: MemoryError/],
    ["holds more than its limit", "small", { how: "hold", megabytes: 120 }, /held \d+ MB.* 64 MB/],
    ["has a child that holds it", "small_in_shell", { how: "hold", megabytes: 120 }, /held \d+ MB.* 64 MB/],
  ])("%s: MEMORY_LIMIT", async (_, type, input, message) => {
    expect(await bench.run(type, input)).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "MEMORY_LIMIT", message: expect.stringMatching(message), retryable: true },
    });
    expect(await bench.run(type, { how: "good" })).toMatchObject(good);
  });

  it.each(["quick", "quick_in_shell"])("burns CPU (%s): CPU_LIMIT", async (type) => {
    expect(await bench.run(type, { how: "burn" })).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "CPU_LIMIT", message: expect.stringContaining("1 s"), retryable: true },
    });
    expect(await bench.run(type, { how: "good" })).toMatchObject(good);
  });
});

describe("grandchildren", () => {
  it("do not outlive a program that ends", async () => {
    expect(await bench.run("forks", {})).toMatchObject(good);
    const pids = await pidsIn(left, 3);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it("do not outlive a program that is cancelled, TERM or not", async () => {
    const job = await bench.enqueue("forks_and_stays", {});
    const pids = await pidsIn(leftByCancelled, 3);
    await job.cancel();
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 10 }))?.state).toBe("CANCELLED");
    expect(pids.filter(isAlive)).toEqual([]);
  });
});

describe.runIf(isLinux)("a worker that is killed", () => {
  it("takes its programs with it, and its supervisor what they started", async () => {
    const file = newFile();
    const worker = runCli(["work", "--handlers", program("executables.mjs"), "--queues", "killed"], {
      DATABASE_URL: db.url,
      LEASE_SECONDS: "60",
    });
    const input = { file, starts: true };
    const job = await db.oracle.enqueue("stays", input, { queue: "killed", maxAttempts: 1 });
    const pids = await pidsIn(file, 2);
    expect(pids.filter(isAlive)).toEqual(pids);
    for (const child of worker.children()) process.kill(child, "SIGKILL");
    await until("the end of the program and what it started", async () => !pids.some(isAlive));
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 20 }))?.error?.code).toBe("WORKER_CRASHED");
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  it("takes its programs with it without a supervisor too", async () => {
    const file = newFile();
    await db.oracle.enqueue("stays", { file, starts: false }, { queue: "unsupervised" });
    const worker = spawn(process.execPath, [program("library-worker.mjs"), "unsupervised"], {
      env: { PATH: process.env.PATH, DATABASE_URL: db.url },
      stdio: "ignore",
    });
    const [pid] = (await pidsIn(file)) as [number];
    expect(isAlive(pid)).toBe(true);
    worker.kill("SIGKILL");
    await until("the program's end", async () => !isAlive(pid));
  });
});
