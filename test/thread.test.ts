import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import type { JobDefinition } from "oracle-worker";
import { beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import { useTestDatabase } from "./support/oracle.js";
import { allowed, blocks, chatters, hide, hoards, where } from "./support/threads/jobs.js";
import { selfish } from "./support/threads/program.js";

// Handlers in worker threads, beside what test/conformance.test.ts asks of every place.

const hidden = hide();
const homeless: JobDefinition = { ...hidden, type: "homeless", module: undefined };

const db = useTestDatabase();
const lines: unknown[] = [];
beforeAll(async () => {
  process.env.THREADS_ALLOWED = "let through";
  process.env.THREADS_SECRET = "kept back";
  await db.worker({
    jobs: [where, allowed, hoards, blocks, chatters, hidden, homeless, selfish],
    concurrency: 50,
    log: ({ type }: Lease) => ({
      info: (message, fields) => type === "chatters" && lines.push([message, fields]),
      warn() {},
      error() {},
    }),
  });
});

const run = async (type: string, input: unknown = {}) => {
  const job = await db.oracle.enqueue(type, input, { maxAttempts: 1, key: randomUUID() });
  const { state, error } = (await db.oracle.wait(job.id, { timeoutSeconds: 20 })) ?? {};
  return { state, error, result: (await db.oracle.result(job.id))?.payload as Record<string, unknown> };
};

describe("threads", () => {
  it("are few, serve many jobs, and belong to this process", async () => {
    const handles = await db.oracle.enqueueMany(where, new Array(40).fill({ ms: 5 }));
    const results = await Promise.all(handles.map((handle) => handle.result({ timeoutSeconds: 20 })));
    const threads = new Set(results.map(({ thread }) => thread));
    expect(threads.size).toBeGreaterThan(1);
    expect(threads.size).toBeLessThanOrEqual(Math.max(2, availableParallelism()));
    expect(threads).not.toContain(0);
    expect(new Set(results.map(({ pid }) => pid))).toEqual(new Set([process.pid]));
  });

  it("see the allowed part of the environment only", async () => {
    const { result } = await run("where", { ms: 0 });
    const names = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "ORACLE_WORKER_ISOLATED"];
    for (const name of result.env as string[]) expect(names).toContain(name);
    expect((await run("allowed", { ms: 0 })).result.env).toEqual(["let through"]);
  });

  it("end for themselves what hoards memory or ignores its timeout; the others go on", async () => {
    const others = await db.oracle.enqueueMany(where, new Array(10).fill({ ms: 50 }));
    const [hoarding, blocking] = await Promise.all([run("hoards"), run("blocks")]);
    expect(hoarding).toMatchObject({
      state: "FAILED_TERMINAL",
      error: { code: "MEMORY_LIMIT", retryable: true },
    });
    expect(blocking).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "TIMEOUT" } });
    await Promise.all(others.map((handle) => handle.result({ timeoutSeconds: 20 })));
  });

  it("say everything, in order, before their result, also what is no JSON", async () => {
    expect(await run("chatters", { lines: 500 })).toMatchObject({ state: "SUCCEEDED" });
    expect(lines).toHaveLength(500);
    expect(lines[499]).toEqual(["line", { n: 499, big: "1", call: "[function]" }]);
  });

  it.each([
    ["hidden", /threads.jobs\.ts does not export job type hidden/],
    ["homeless", /must be defined in a module of its own/],
    ["selfish", /program\.ts cannot be loaded: connect\(\) was called where a handler runs/],
  ])("refuse the job %s, whose module they cannot use", async (type, message) => {
    expect(await run(type)).toMatchObject({
      error: { code: "HANDLERS_INVALID", message: expect.stringMatching(message) },
    });
  });
});
