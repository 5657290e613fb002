import { defineJob } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { reclaim } from "../dist/store/reclaim.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();

const score = (version?: string) =>
  defineJob({
    type: "score",
    input: z.null(),
    output: z.string(),
    ...(version === undefined ? {} : { version }),
    run: () => version ?? "no version",
  });

describe("a handler's version", () => {
  it("is recorded with each attempt, declared or as a digest of the code", async () => {
    const queue = "recorded";
    const declared = await db.oracle.enqueue(score("2.1"), null, { queue });
    const first = await db.worker({ jobs: [score("2.1")], queues: [queue] });
    await declared.result({ timeoutSeconds: 10 });
    await first.stop();
    expect((await db.oracle.attempts(declared.id))[0]?.handlerVersion).toBe("2.1");

    const digested = await db.oracle.enqueue(score(), null, { queue });
    await db.worker({ jobs: [score()], queues: [queue] });
    await digested.result({ timeoutSeconds: 10 });
    const [attempt] = await db.oracle.attempts(digested.id);
    expect(attempt?.handlerVersion).toMatch(/^[0-9a-f]{12}$/);
    expect(attempt?.handlerVersion).toBe(score().version);
  });

  it("that a job pins is waited for: workers with another leave it and go on with the rest", async () => {
    const queue = "pinned";
    const pinned = await db.oracle.enqueue(score("2"), null, { queue, version: "2", priority: 10 });
    const free = await db.oracle.enqueue(score("1"), null, { queue });
    const old = await db.worker({ jobs: [score("1")], queues: [queue], concurrency: 1 });
    expect(await free.result({ timeoutSeconds: 10 })).toBe("1");
    await old.drained();
    expect(await pinned.state()).toBe("PENDING");
    expect(await db.oracle.attempts(pinned.id)).toEqual([]);
    await db.worker({ jobs: [score("2")], queues: [queue] });
    expect(await pinned.result({ timeoutSeconds: 10 })).toBe("2");
    await old.stop();
  });

  it("that a job pins is kept when its lease runs out: another version closes the attempt but does not run it", async () => {
    const queue = "lost";
    const store = workerDatabase(db);
    const job = await db.oracle.enqueue(score("2"), null, { queue, version: "2" });
    expect((await claimFrom(store, queue, { versions: { score: "2" } })).leases).toHaveLength(1);
    await expireLease(db, job.id);
    const sweep = { workerId: "sweeper", queues: [queue], leaseSeconds: 60, limit: 5 };
    expect((await reclaim(store, { ...sweep, versions: { score: "1" } })).leases).toEqual([]);
    expect(await job.state()).toBe("FAILED_RETRYABLE");
    expect((await claimFrom(store, queue, { versions: { score: "1" } })).leases).toEqual([]);
    const [lease] = (await claimFrom(store, queue, { versions: { score: "2" } })).leases;
    expect(lease).toMatchObject({ jobId: job.id, attemptNo: 2, lastError: "LEASE_EXPIRED" });
    const attempts = await db.oracle.attempts(job.id);
    expect(attempts.map(({ status, handlerVersion }) => `${status} ${handlerVersion}`)).toEqual([
      "LEASE_EXPIRED 2",
      "RUNNING 2",
    ]);
    await store.close();
  });

  it("that a job pins outlives a new order of its queue", async () => {
    const queue = "reordered";
    const job = await db.oracle.enqueue(score("2"), null, { queue, version: "2" });
    await db.oracle.setQueueAgeing(queue, 10);
    const rows = await db.sql("SELECT pin FROM oracle.ready_jobs WHERE job_id = $1", [job.id]);
    expect(rows).toEqual([{ pin: "score@2" }]);
  });

  it("that a job pins is found again after a delay", async () => {
    const queue = "delayed";
    const job = await db.oracle.enqueue(score("2"), null, { queue, version: "2", runAfter: 1 });
    const old = await db.worker({ jobs: [score("1")], queues: [queue] });
    await until("its time", async () => {
      const rows = await db.sql("SELECT pin FROM oracle.ready_jobs WHERE job_id = $1", [job.id]);
      return rows[0]?.pin === "score@2";
    });
    expect(await job.state()).toBe("PENDING");
    await db.worker({ jobs: [score("2")], queues: [queue] });
    expect(await job.result({ timeoutSeconds: 10 })).toBe("2");
    await old.stop();
  });
});
