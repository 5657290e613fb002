import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { WorkerEvent } from "../dist/core/events.js";
import { echo } from "./support/jobs.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, runCli } from "./support/process.js";

// Handlers that block the event loop of their process past the job's timeout.

const db = useTestDatabase();
const attemptsOf = async (id: string) =>
  (await db.oracle.attempts(id)).map(({ status, cause }) => (cause ? `${status} ${cause}` : status));

describe("in a worker of the library", () => {
  it("the attempt fails as TIMEOUT while the loop is still blocked, and the worker takes no more jobs", async () => {
    const queue = "library";
    let endedAt = 0;
    const blocker = defineJob({
      type: "blocker",
      input: z.object({ ms: z.number() }),
      output: z.null(),
      timeoutSeconds: 1,
      backoff: { kind: "fixed", baseSeconds: 600 },
      run({ input }) {
        const endsAt = Date.now() + input.ms;
        while (Date.now() < endsAt);
        endedAt = Date.now();
        return null;
      },
    });
    const events: WorkerEvent[] = [];
    const job = await db.oracle.enqueue(blocker, { ms: 6000 }, { queue });
    const worker = await db.worker({
      jobs: [blocker, echo],
      queues: [queue],
      leaseSeconds: 1,
      onEvent: (event) => events.push(event),
    });
    await until("the loop to turn again", async () => endedAt > 0);
    const [attempt] = await db.oracle.attempts(job.id);
    expect(attempt).toMatchObject({ status: "FAILED", cause: "TIMEOUT" });
    expect(attempt?.error).toMatchObject({ code: "TIMEOUT", retryable: true });
    expect(attempt?.endedAt?.getTime()).toBeLessThan(endedAt);
    expect(await job.state()).toBe("FAILED_RETRYABLE");
    await until("the word of it", async () => events.some(({ event }) => event === "worker.blocked"));

    const next = await db.oracle.enqueue(echo, { n: 1 }, { queue });
    await expect(worker.drained()).rejects.toMatchObject({ code: "WORKER_BLOCKED", jobId: job.id });
    expect(await next.state()).toBe("PENDING");
    const other = await db.worker({ jobs: [echo], queues: [queue] });
    expect(await next.result({ timeoutSeconds: 10 })).toEqual({ n: 1 });
    await Promise.all([worker.stop(), other.stop()]);
    expect(await attemptsOf(job.id)).toEqual(["FAILED TIMEOUT"]);
  });

  it("a deadline that passes while the loop is blocked is final", async () => {
    const queue = "deadline";
    const blocker = defineJob({
      type: "blocker",
      input: z.null(),
      output: z.null(),
      run() {
        const endsAt = Date.now() + 5000;
        while (Date.now() < endsAt);
        return null;
      },
    });
    const job = await db.oracle.enqueue(blocker, null, { queue, deadline: 2 });
    const worker = await db.worker({ jobs: [blocker], queues: [queue], leaseSeconds: 1 });
    await until("its end", async () => (await job.state()) === "FAILED_TERMINAL");
    expect(await attemptsOf(job.id)).toEqual(["FAILED DEADLINE_EXCEEDED"]);
    await worker.stop();
  });
});

describe("under a supervisor", () => {
  it("the process is replaced: the blocker fails as TIMEOUT, the job beside it runs again for free", async () => {
    const queue = "supervised";
    const file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
    const env = { DATABASE_URL: db.url, LEASE_SECONDS: "30", POLL_INTERVAL: "100ms" };
    const worker = runCli(["work", "--handlers", handlers, "--queues", queue], env);
    const beside = await db.oracle.enqueue("logged", { file, ms: 4000 }, { queue, maxAttempts: 1 });
    await until("it to run", async () => existsSync(file) && readFileSync(file, "utf8").includes(beside.id));
    const [pid] = worker.children();
    const blocker = await db.oracle.enqueue("block", {}, { queue, timeoutSeconds: 1, maxAttempts: 1 });
    await until("the blocker's end", async () => (await blocker.state()) === "FAILED_TERMINAL", 20_000);
    expect(await attemptsOf(blocker.id)).toEqual(["FAILED TIMEOUT"]);
    await beside.result({ timeoutSeconds: 20 });
    expect(await attemptsOf(beside.id)).toEqual(["RELEASED PROCESS_REPLACED", "SUCCEEDED"]);
    expect(worker.children()).not.toContain(pid);
    expect(worker.output()).toContain("worker process replaced");
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});
