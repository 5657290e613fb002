import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease, Outcome } from "../dist/core/job.js";
import { acquire, startJob } from "../dist/store/acquire.js";
import type { Database } from "../dist/store/database.js";
import { freeDeadWorker } from "../dist/store/free-worker.js";
import { reclaim } from "../dist/store/reclaim.js";
import { renew } from "../dist/store/renew.js";
import { settle } from "../dist/store/settle.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
let store: Database;
let queueNumber = 0;
beforeAll(async () => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

/** One claimed job in a queue of its own. */
async function leased(
  options: { maxAttempts?: number; leaseSeconds?: number } = {},
): Promise<{ lease: Lease; queue: string }> {
  const queue = `lease-${queueNumber++}`;
  await db.oracle.enqueue("any", { n: queueNumber }, { queue, maxAttempts: options.maxAttempts ?? 3 });
  const { leases } = await claimFrom(store, queue, {
    leaseSeconds: options.leaseSeconds ?? 60,
    workerId: queue,
  });
  return { lease: leases[0] as Lease, queue };
}

const success = (value: unknown): Outcome => ({
  kind: "succeeded",
  resultText: JSON.stringify(value),
  contentHash: "hash",
});
const attemptsOf = (jobId: string) =>
  db.sql("SELECT attempt_no, status::text, cause FROM oracle.attempts WHERE job_id = $1 ORDER BY 1", [jobId]);
const sweep = (queue: string, workerId = "sweeper", limit = 10) =>
  reclaim(store, { workerId, queues: [queue], leaseSeconds: 60, versions: {}, limit });

describe("renewal", () => {
  it("extends many leases in one statement and says which still hold", async () => {
    const a = await leased();
    const b = await leased();
    await expireLease(db, b.lease.jobId);
    const kept = await renew(store, [a.lease, b.lease], 120);
    expect([...kept]).toEqual([a.lease.attemptId]);
  });

  it("does not revive an expired lease from inside an older transaction", async () => {
    const { lease } = await leased({ leaseSeconds: 0.3 });
    const kept = await store.transaction(async (client) => {
      await client.query({ text: "SELECT 1" });
      await new Promise((resolve) => setTimeout(resolve, 500));
      return renew(store, [lease], 60, client);
    });
    expect(kept.size).toBe(0);
  });

  it("extends nothing for a stale attempt or a finished job", async () => {
    const { lease, queue } = await leased();
    await expireLease(db, lease.jobId);
    const { leases } = await sweep(queue);
    expect((await renew(store, [lease], 60)).size).toBe(0);
    await settle(store, [{ lease: leases[0] as Lease, outcome: success(1) }]);
    expect((await renew(store, leases, 60)).size).toBe(0);
  });
});

describe("claim", () => {
  it("a delayed job of high priority does not hide a ready one from a claim of one", async () => {
    const queue = "blocked-head";
    await db.oracle.enqueue("any", {}, { queue, priority: 10, runAfter: 60 });
    const ready = await db.oracle.enqueue("any", {}, { queue });
    expect((await claimFrom(store, queue, { limit: 1 })).leases).toMatchObject([{ jobId: ready.id }]);
  });
});

describe("reclaim", () => {
  it("closes the old attempt and opens a new one in one statement", async () => {
    const { lease, queue } = await leased();
    await expireLease(db, lease.jobId);
    const { leases } = await sweep(queue);
    expect(leases).toHaveLength(1);
    expect(leases[0]).toMatchObject({ jobId: lease.jobId, attemptNo: 2 });
    expect(await attemptsOf(lease.jobId)).toEqual([
      { attempt_no: 1, status: "LEASE_EXPIRED", cause: "LEASE_EXPIRED" },
      { attempt_no: 2, status: "RUNNING", cause: null },
    ]);
  });

  it("leaves healthy holders alone, whatever the hint says", async () => {
    const { lease, queue } = await leased();
    await db.sql("UPDATE oracle.claims SET expires_at = clock_timestamp() WHERE $1 = ANY (job_ids)", [
      lease.jobId,
    ]);
    expect((await sweep(queue)).leases).toEqual([]);
    const [hint] = await db.sql(
      "SELECT expires_at > clock_timestamp() + interval '30 s' AS moved FROM oracle.claims WHERE $1 = ANY (job_ids)",
      [lease.jobId],
    );
    expect(hint?.moved).toBe(true);
  });

  it("ends a job whose attempts are used up, also when another queue's worker finds it", async () => {
    const { lease } = await leased({ maxAttempts: 1 });
    await expireLease(db, lease.jobId);
    expect((await sweep("some-other-queue")).ended).toEqual([]);
    await db.sql(
      "UPDATE oracle.claims SET expires_at = clock_timestamp() - interval '10 s' WHERE $1 = ANY (job_ids)",
      [lease.jobId],
    );
    const { ended, leases } = await sweep("some-other-queue");
    expect(leases).toEqual([]);
    expect(ended).toMatchObject([{ jobId: lease.jobId, state: "FAILED_TERMINAL" }]);
    const job = await db.oracle.get(lease.jobId);
    expect(job).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "LEASE_EXPIRED" } });
    expect(job?.completedAt).toBeInstanceOf(Date);
    expect((await attemptsOf(lease.jobId))[0]?.status).toBe("LEASE_EXPIRED");
  });

  it("a worker of another queue does not move the hint away from those who serve it", async () => {
    const { lease, queue } = await leased();
    await expireLease(db, lease.jobId);
    await sweep("some-other-queue");
    expect((await sweep(queue)).leases).toHaveLength(1);
  });

  it("cancels instead of restarting when a cancel was asked for", async () => {
    const { lease, queue } = await leased();
    await db.oracle.cancel(lease.jobId);
    await expireLease(db, lease.jobId);
    expect((await sweep(queue)).leases).toEqual([]);
    expect((await db.oracle.get(lease.jobId))?.state).toBe("CANCELLED");
  });

  it("takes no more than asked for, and the rest later", async () => {
    const queue = "many-expired";
    await db.oracle.enqueueMany(
      "any",
      Array.from({ length: 7 }, (_, n) => n),
      { queue },
    );
    const { leases } = await claimFrom(store, queue, { limit: 7 });
    for (const lease of leases) await expireLease(db, lease.jobId);
    expect((await sweep(queue, "w", 3)).leases).toHaveLength(3);
    await db.sql("UPDATE oracle.claims SET expires_at = clock_timestamp()");
    expect((await sweep(queue, "w", 10)).leases).toHaveLength(4);
  });

  it("waits while the queue is paused", async () => {
    const { lease, queue } = await leased();
    await db.oracle.pauseQueue(queue);
    await expireLease(db, lease.jobId);
    expect((await sweep(queue)).leases).toEqual([]);
    await db.oracle.resumeQueue(queue);
    await db.sql("UPDATE oracle.claims SET expires_at = clock_timestamp()");
    expect((await sweep(queue)).leases).toHaveLength(1);
  });
});

describe("the fence", () => {
  it("keeps a late success as evidence, never as the result", async () => {
    const { lease, queue } = await leased();
    await expireLease(db, lease.jobId);
    const { leases } = await sweep(queue);
    expect((await settle(store, [{ lease, outcome: success("stale") }])).size).toBe(0);
    expect(await db.oracle.get(lease.jobId)).toMatchObject({ state: "RUNNING" });
    await settle(store, [{ lease: leases[0] as Lease, outcome: success("fresh") }]);
    expect((await db.oracle.result(lease.jobId))?.payload).toBe("fresh");
    const attempts = await db.oracle.attempts(lease.jobId);
    expect(attempts.map(({ status }) => status)).toEqual(["SUPERSEDED", "SUCCEEDED"]);
    expect(attempts[0]?.lateOutput).toMatchObject({ kind: "succeeded", result: "stale" });
  });

  it("accepts an outcome that comes after the lease's end while nobody has taken over", async () => {
    const { lease } = await leased();
    await expireLease(db, lease.jobId);
    expect((await settle(store, [{ lease, outcome: success("late") }])).size).toBe(1);
    expect((await db.oracle.result(lease.jobId))?.payload).toBe("late");
  });

  it("holds against the same worker that claimed the job again", async () => {
    const { lease, queue } = await leased();
    await expireLease(db, lease.jobId);
    const again = await sweep(queue, queue);
    expect(again.leases).toHaveLength(1);
    expect((await settle(store, [{ lease, outcome: success(1) }])).size).toBe(0);
  });

  it("knows its own outcome again when the reply to the first try was lost", async () => {
    const { lease } = await leased();
    await settle(store, [{ lease, outcome: success(1) }]);
    expect(await settle(store, [{ lease, outcome: success(1) }])).toEqual(
      new Map([[lease.attemptId, "SUCCEEDED"]]),
    );
  });

  it("a late failure moves neither SUCCEEDED nor CANCELLED", async () => {
    const failure: Outcome = {
      kind: "terminal",
      error: { code: "HANDLER_ERROR", message: "late", retryable: false },
    };
    const done = await leased();
    await settle(store, [{ lease: done.lease, outcome: success(1) }]);
    expect((await settle(store, [{ lease: done.lease, outcome: failure }])).get(done.lease.attemptId)).toBe(
      "SUCCEEDED",
    );
    expect((await db.oracle.get(done.lease.jobId))?.state).toBe("SUCCEEDED");

    const gone = await leased();
    await settle(store, [{ lease: gone.lease, outcome: { kind: "cancelled" } }]);
    expect((await settle(store, [{ lease: gone.lease, outcome: failure }])).get(gone.lease.attemptId)).toBe(
      "CANCELLED",
    );
    expect(await db.oracle.get(gone.lease.jobId)).toMatchObject({ state: "CANCELLED", leaseExpiresAt: null });
  });

  it("settles many outcomes of every kind in one call, each on its own", async () => {
    const error = { code: "HANDLER_ERROR" as const, message: "m", retryable: true };
    const cases: [Outcome, string, string][] = [
      [success(1), "SUCCEEDED", "SUCCEEDED"],
      [{ kind: "retryable", error, delaySeconds: 60 }, "FAILED_RETRYABLE", "FAILED"],
      [{ kind: "terminal", error }, "FAILED_TERMINAL", "FAILED"],
      [{ kind: "released", cause: "SHUTDOWN", delaySeconds: 0 }, "PENDING", "RELEASED"],
      [{ kind: "snoozed", delaySeconds: 60 }, "PENDING", "RELEASED"],
      [{ kind: "cancelled" }, "CANCELLED", "CANCELLED"],
    ];
    const leases = await Promise.all(cases.map(() => leased()));
    await settle(
      store,
      cases.map(([outcome], index) => ({ lease: (leases[index] as { lease: Lease }).lease, outcome })),
    );
    for (const [index, [, state, status]] of cases.entries()) {
      const { jobId } = (leases[index] as { lease: Lease }).lease;
      expect((await db.oracle.get(jobId))?.state).toBe(state);
      expect((await attemptsOf(jobId))[0]?.status).toBe(status);
    }
  });
});

describe("counting attempts", () => {
  it("fails for good when the attempts are used up", async () => {
    const { lease } = await leased({ maxAttempts: 1 });
    const error = { code: "TIMEOUT" as const, message: "m", retryable: true };
    const won = await settle(store, [{ lease, outcome: { kind: "retryable", error, delaySeconds: 0 } }]);
    expect(won.get(lease.attemptId)).toBe("FAILED_TERMINAL");
  });

  it("releases cost nothing up to the cap, snoozes never do", async () => {
    const queue = "releases";
    const job = await db.oracle.enqueue("any", {}, { queue, maxAttempts: 2 });
    for (let round = 0; round < 25; round++) {
      const { leases } = await claimFrom(store, queue);
      await settle(store, [{ lease: leases[0] as Lease, outcome: { kind: "snoozed", delaySeconds: 0 } }]);
    }
    expect(await db.oracle.get(job.id)).toMatchObject({
      state: "PENDING",
      attemptCount: 25,
      interruptions: 25,
    });
    for (let round = 0; round < 21; round++) {
      const { leases } = await claimFrom(store, queue);
      const outcome: Outcome = { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 };
      await settle(store, [{ lease: leases[0] as Lease, outcome }]);
    }
    expect(await db.oracle.get(job.id)).toMatchObject({
      state: "PENDING",
      attemptCount: 46,
      interruptions: 45,
    });
    const { leases } = await claimFrom(store, queue);
    await settle(store, [
      { lease: leases[0] as Lease, outcome: { kind: "released", cause: "X", delaySeconds: 0 } },
    ]);
    expect(await db.oracle.get(job.id)).toMatchObject({ state: "FAILED_TERMINAL" });
  });

  it("an operator's retry keeps the history and lets numbers go on", async () => {
    const { lease, queue } = await leased({ maxAttempts: 1 });
    await settle(store, [
      {
        lease,
        outcome: { kind: "terminal", error: { code: "HANDLER_ERROR", message: "m", retryable: false } },
      },
    ]);
    expect(await db.oracle.retry(lease.jobId)).toMatchObject({ state: "PENDING", maxAttempts: 2 });
    const { leases } = await claimFrom(store, queue);
    expect(leases[0]?.attemptNo).toBe(2);
    const audit = await db.sql("SELECT action FROM oracle.audit WHERE job_id = $1", [lease.jobId]);
    expect(audit).toEqual([{ action: "retry" }]);
  });
});

describe("a worker that died", () => {
  it("is charged for what it had started and not for what it had only claimed", async () => {
    const queue = "dead-worker";
    await db.oracle.enqueueMany("any", [1, 2, 3], { queue });
    const { leases } = await claimFrom(store, queue, { workerId: "dead.1" });
    const started = leases[0] as Lease;
    const freed = await freeDeadWorker(store, "dead.1", [started.jobId], "WORKER_CRASHED");
    expect(freed).toEqual({ started: 1, unstarted: 2 });
    const { leases: reclaimed } = await sweep(queue);
    expect(reclaimed).toMatchObject([{ jobId: started.jobId, attemptNo: 2, interruptions: 0 }]);
    expect((await attemptsOf(started.jobId))[0]).toEqual({
      attempt_no: 1,
      status: "LEASE_EXPIRED",
      cause: "WORKER_CRASHED",
    });
    const { leases: others } = await claimFrom(store, queue);
    expect(others).toHaveLength(2);
    for (const other of others) expect(other).toMatchObject({ attemptNo: 2, interruptions: 1 });
  });
});

describe("by id", () => {
  const request = (jobId: string) => ({ jobId, workerId: "by-id", leaseSeconds: 60 });

  it("has one winner, and the loser is told why", async () => {
    const job = await db.oracle.enqueue("any", {}, { queue: "by-id" });
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => acquire(store, request(job.id))));
    expect(outcomes.filter((outcome) => outcome.won)).toHaveLength(1);
    const losers = outcomes.flatMap((outcome) => (outcome.won ? [] : [outcome.why]));
    for (const why of losers)
      expect(why).toMatch(/^(is leased by worker by-id|was taken by somebody else at the same moment)$/);
    expect(await acquire(store, request(job.id))).toEqual({ won: false, why: "is leased by worker by-id" });
    expect((await claimFrom(store, "by-id")).leases).toEqual([]);
  });

  it("steals an expired lease within the attempt bound", async () => {
    const { lease } = await leased({ maxAttempts: 2 });
    await expireLease(db, lease.jobId);
    expect(await acquire(store, request(lease.jobId))).toMatchObject({ won: true, lease: { attemptNo: 2 } });
    await expireLease(db, lease.jobId);
    expect(await acquire(store, request(lease.jobId))).toEqual({
      won: false,
      why: "has used up its attempts",
    });
  });

  it("honours run_after, pause, deadline and state like any claim", async () => {
    const later = await db.oracle.enqueue("any", {}, { runAfter: 60 });
    expect(await acquire(store, request(later.id))).toMatchObject({
      why: expect.stringMatching(/^may not run before/),
    });
    const paused = await db.oracle.enqueue("any", {}, { queue: "paused-by-id" });
    await db.oracle.pauseQueue("paused-by-id");
    expect(await acquire(store, request(paused.id))).toMatchObject({
      why: "waits in a paused queue: paused-by-id",
    });
    const cancelled = await db.oracle.enqueue("any", {});
    await db.oracle.cancel(cancelled.id);
    expect(await acquire(store, request(cancelled.id))).toMatchObject({ why: "is already CANCELLED" });
    expect(await acquire(store, request("00000000-0000-7000-8000-000000000000"))).toEqual({
      won: false,
      why: "does not exist",
    });
  });

  it("startJob returns a frozen snapshot, and says conflict or precondition", async () => {
    const job = await db.oracle.enqueue("any", { x: 1 }, { queue: "start" });
    const holder = new pg.Client(db.url);
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM oracle.jobs WHERE job_id = $1 FOR UPDATE", [job.id]);
    await expect(startJob(store, request(job.id))).rejects.toMatchObject({
      code: "JOB_LOCK_CONFLICT",
      jobId: job.id,
    });
    await holder.query("ROLLBACK");
    await holder.end();
    const locked = await startJob(store, request(job.id));
    expect(Object.isFrozen(locked)).toBe(true);
    expect(locked).toMatchObject({ jobId: job.id, input: { x: 1 }, attemptNo: 1 });
    // A crash right here leaves a lease behind, not a row that is RUNNING for ever.
    expect((await db.oracle.get(job.id))?.leaseExpiresAt).toBeInstanceOf(Date);
    await expect(startJob(store, request(job.id))).rejects.toMatchObject({ code: "JOB_PRECONDITION" });
  });

  it("a job whose starter died is taken over when its lease ends", async () => {
    const queue = "starter-died";
    const job = await db.oracle.enqueue("any", {}, { queue });
    await startJob(store, { ...request(job.id), leaseSeconds: 0.2 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await sweep(queue)).leases).toMatchObject([{ jobId: job.id, attemptNo: 2 }]);
  });
});
