import { connect, createWorker, defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { echo } from "./support/jobs.js";
import { useTestDatabase } from "./support/oracle.js";

// Calls that a type checker would refuse: plain JavaScript gets a coded error too, and nothing is stored.

const db = useTestDatabase();

const plain = <T>(value: unknown) => value as T;
const jobs = async () => (await db.sql("SELECT count(*)::int AS n FROM oracle.jobs"))[0]?.n;
const good = { type: "t", input: z.any(), output: z.any(), run: () => 1 };

describe("options that do not exist", () => {
  const calls: Record<string, (options: never) => Promise<unknown>> = {
    enqueue: (options) => db.oracle.enqueue(echo, { n: 1 }, options),
    enqueueMany: (options) => db.oracle.enqueueMany(echo, [{ n: 1 }], options),
    connect: (options) => connect(options),
    createWorker: (options) => createWorker(db.oracle, options),
    defineJob: async (options) => defineJob({ ...good, ...plain<object>(options) }),
  };

  it.each([
    ["enqueue", "Priority", "key, queue, priority, runAfter"],
    ["enqueueMany", "key", "keys, queue, priority, runAfter"],
    ["connect", "database", "databaseUrl, directDatabaseUrl, embedded"],
    ["createWorker", "leaseSecond", "jobs, queues, tenant, concurrency"],
    ["defineJob", "timeout", "type, input, output, timeoutSeconds"],
  ])("%s names %s and those there are", async (call, field, known) => {
    const before = await jobs();
    const refused = calls[call]?.(plain({ [field]: 1 }));
    await expect(refused).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field });
    await expect(refused).rejects.toThrow(`${call}: there is no option "${field}". Known: ${known}`);
    await expect(refused).rejects.not.toThrow(/journal|replayOf/);
    expect(await jobs()).toBe(before);
  });

  it.each(["enqueue", "enqueueMany", "connect", "createWorker"])("%s wants an object", async (call) => {
    for (const options of [null, 5, "x"])
      await expect(calls[call]?.(plain(options))).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        field: "options",
      });
  });
});

describe("values of a wrong kind", () => {
  it("defineJob without options", () => {
    expect(() => defineJob(plain<typeof good>(undefined))).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", field: "options" }),
    );
  });

  it.each([
    ["inputs", 5, {}],
    ["inputs", undefined, {}],
    ["keys", [{ n: 1 }], { keys: "k" }],
    ["keys", [{ n: 1 }], { keys: ["a", "b"] }],
  ])("enqueueMany: %s", async (field, inputs, options) => {
    await expect(db.oracle.enqueueMany("x", plain(inputs), plain(options))).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      field,
    });
  });

  it.each([undefined, null, 5, { type: "x" }])("enqueue: a job that is %s", async (job) => {
    const refused = { code: "INVALID_ARGUMENT", field: "job" };
    await expect(db.oracle.enqueue(plain<string>(job), {})).rejects.toMatchObject(refused);
  });

  it.each(["runAfter", "deadline"])("enqueue: %s outside of the years 1 to 9999", async (field) => {
    for (const moment of [
      "0000-12-31T23:59:59.999Z",
      "-004800-01-01T00:00:00Z",
      "+010000-01-01T00:00:00Z",
      "?",
    ])
      await expect(db.oracle.enqueue(echo, { n: 1 }, { [field]: new Date(moment) })).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        field,
      });
  });

  it("enqueue: a moment of the year 1 is long past", async () => {
    const runAfter = new Date("0001-01-01T00:00:00Z");
    const job = await db.oracle.enqueue(echo, { n: 1 }, { queue: "ancient", runAfter });
    expect((await db.oracle.get(job.id))?.runAfter.getTime()).toBe(runAfter.getTime());
  });

  it("list: a state nobody knows is refused with those there are, another queue's word is understood", async () => {
    for (const state of ["X", 7]) {
      const refused = db.oracle.list({ state: plain(state) });
      await expect(refused).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field: "state" });
      await expect(refused).rejects.toThrow(/PENDING, RUNNING, SUCCEEDED, FAILED_RETRYABLE/);
    }
    const { items } = await db.oracle.list({ state: plain("queued") });
    expect(items.every((job) => job.state === "PENDING")).toBe(true);
  });

  it("plan(null) in a handler", async () => {
    const type = "plan_null";
    const planner = defineJob({
      type,
      input: z.any(),
      output: z.any(),
      approve: "person",
      run: ({ plan }) => plan(null as never),
    });
    await db.worker({ jobs: [planner], queues: [type] });
    const job = await db.oracle.enqueue(planner, {}, { queue: type, maxAttempts: 1 });
    await db.oracle.wait(job.id, { timeoutSeconds: 60 });
    expect((await db.oracle.get(job.id))?.error).toMatchObject({
      code: "INVALID_ARGUMENT",
      field: "effects",
    });
  });
});
