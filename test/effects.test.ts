import { EffectFailed, TerminalError } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { freeDeadWorker } from "../dist/store/free-worker.js";
import { findEffects } from "../dist/store/list-effects.js";
import { reclaim } from "../dist/store/reclaim.js";
import { settle } from "../dist/store/settle.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { gate, rested, startHandler } from "./support/run.js";

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

const effectsOf = async (id: string) => db.oracle.effects(id);
const only = async (id: string) => {
  const effects = await effectsOf(id);
  expect(effects).toHaveLength(1);
  return effects[0] as (typeof effects)[number];
};

describe("an effect", () => {
  it("is on record before it is made, and its outcome after", async () => {
    const during: unknown[] = [];
    const { id, rested, stop } = await startHandler(db, ({ effect, job }) =>
      effect({ key: "charge", kind: "idempotent", request: { cents: 100 } }, async (call) => {
        const { state, idempotencyKey, attemptNo } = await only(job.id);
        during.push({
          state,
          attemptNo,
          sameKey: idempotencyKey === call.idempotencyKey,
          request: call.request,
        });
        return { id: "ch_1" };
      }),
    );
    expect((await rested()).state).toBe("SUCCEEDED");
    expect(during).toEqual([{ state: "DISPATCHED", attemptNo: 1, sameKey: true, request: { cents: 100 } }]);
    expect(await only(id)).toMatchObject({
      state: "CONFIRMED",
      kind: "idempotent",
      request: { cents: 100 },
      response: { id: "ch_1" },
      dispatches: 1,
    });
    await stop();
  });

  it("that is confirmed is never made again", async () => {
    let calls = 0;
    const { id, rested, stop } = await startHandler(db, async ({ effect, job }) => {
      const sent = await effect({ key: "mail", kind: "unsafe", request: {} }, () => ++calls);
      if (job.attemptNo < 3) throw new Error("afterwards");
      return sent;
    });
    expect(await rested()).toMatchObject({ state: "SUCCEEDED", attemptCount: 3 });
    expect(calls).toBe(1);
    expect((await db.oracle.result(id))?.payload).toBe(1);
    await stop();
  });

  it("that definitely failed is made again by a retry, under the same key", async () => {
    const keys: string[] = [];
    const { id, rested, stop } = await startHandler(db, ({ effect }) =>
      effect({ key: "pay", kind: "unsafe", request: {} }, ({ idempotencyKey }) => {
        keys.push(idempotencyKey);
        if (keys.length === 1) throw new EffectFailed("refused");
        return "paid";
      }),
    );
    expect(await rested()).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect(keys).toEqual([keys[0], keys[0]]);
    expect(await only(id)).toMatchObject({ state: "CONFIRMED", dispatches: 2, attemptNo: 2, error: null });
    expect((await db.oracle.attempts(id))[0]?.cause).toBe("EFFECT_FAILED");
    await stop();
  });

  it("that failed for good ends the job", async () => {
    const { id, rested, stop } = await startHandler(db, ({ effect }) =>
      effect({ key: "pay", kind: "unsafe", request: {} }, () => {
        throw new EffectFailed("the card is stolen", { retryable: false });
      }),
    );
    expect(await rested()).toMatchObject({
      state: "FAILED_TERMINAL",
      attemptCount: 1,
      error: { code: "EFFECT_FAILED", message: "the card is stolen" },
    });
    expect(await only(id)).toMatchObject({ state: "FAILED", error: { message: "the card is stolen" } });
    await stop();
  });

  it("whose response cannot be kept is in doubt, because it happened", async () => {
    const { id, rested, stop } = await startHandler(db, ({ effect }) =>
      effect({ key: "odd", kind: "unsafe", request: {} }, () => ({ n: 1n })),
    );
    expect(await rested()).toMatchObject({ state: "FAILED_RETRYABLE", holdReason: "effect in doubt" });
    expect(await only(id)).toMatchObject({ state: "IN_DOUBT", error: { code: "PAYLOAD_REJECTED" } });
    await stop();
  });
});

describe("in doubt", () => {
  it("an idempotent effect is sent again with the same key and body", async () => {
    const calls: unknown[] = [];
    const { id, rested, stop } = await startHandler(db, ({ effect }) =>
      effect(
        { key: "pay", kind: "idempotent", request: { cents: 1 } },
        async ({ idempotencyKey, request }) => {
          calls.push([idempotencyKey, request]);
          if (calls.length === 1) throw new Error("socket hang up");
          return "paid";
        },
      ),
    );
    expect(await rested()).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect(calls[1]).toEqual(calls[0]);
    expect(await only(id)).toMatchObject({ state: "CONFIRMED", dispatches: 2 });
    await stop();
  });

  const reconciled = async (found: unknown[], options = {}) => {
    let calls = 0;
    let lookups = 0;
    const running = await startHandler(
      db,
      ({ effect }) =>
        effect(
          {
            key: "order",
            kind: "reconcilable",
            request: { item: 7 },
            lookup({ idempotencyKey, request }) {
              expect(request).toEqual({ item: 7 });
              expect(idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
              const answer = found[lookups++];
              if (answer instanceof Error) throw answer;
              return answer as never;
            },
          },
          () => {
            if (++calls === 1) throw new Error("no answer");
            return `call ${calls}`;
          },
        ),
      options,
    );
    const job = await running.rested();
    await running.stop();
    const result = (await db.oracle.result(job.jobId))?.payload;
    return { job, result, calls, lookups, effect: await only(job.jobId) };
  };

  it("a reconcilable effect that happened, by its lookup, is not made again", async () => {
    const { job, result, calls, effect } = await reconciled([{ happened: true, response: "found" }]);
    expect([job.state, result, calls]).toEqual(["SUCCEEDED", "found", 1]);
    expect(effect).toMatchObject({ state: "CONFIRMED", dispatches: 1 });
  });

  it("a reconcilable effect that did not happen is made again", async () => {
    const { job, result, calls, effect } = await reconciled([{ happened: false }]);
    expect([job.state, result, calls]).toEqual(["SUCCEEDED", "call 2", 2]);
    expect(effect).toMatchObject({ state: "CONFIRMED", dispatches: 2 });
  });

  it("a lookup that cannot be asked is asked by the next attempt", async () => {
    const { job, lookups } = await reconciled([new Error("down"), { happened: true, response: 1 }]);
    expect([job.state, job.attemptCount, lookups]).toEqual(["SUCCEEDED", 3, 2]);
  });

  it("a lookup that cannot tell holds the job", async () => {
    const { job, calls, effect } = await reconciled([{ happened: "unknown" }], { maxAttempts: 2 });
    expect(job).toMatchObject({
      state: "FAILED_RETRYABLE",
      holdReason: "effect in doubt",
      error: { code: "EFFECT_IN_DOUBT" },
    });
    expect([calls, effect.state]).toEqual([1, "IN_DOUBT"]);
  });

  it("a reconcilable effect without a lookup is refused before it is made", async () => {
    let calls = 0;
    const { rested, stop } = await startHandler(db, ({ effect }) =>
      effect({ key: "order", kind: "reconcilable", request: {} }, () => ++calls),
    );
    expect((await rested()).error?.message).toMatch(/needs a lookup/);
    expect(calls).toBe(0);
    await stop();
  });

  it.each([
    ["a plain error", () => new Error("no answer"), 5],
    ["a terminal error", () => new TerminalError("no answer"), 5],
    ["the last try", () => new Error("no answer"), 1],
  ])("an unsafe effect holds the job after %s", async (_what, error, maxAttempts) => {
    let calls = 0;
    const { id, rested, stop } = await startHandler(
      db,
      ({ effect }) =>
        effect({ key: "wire", kind: "unsafe", request: {} }, () => {
          calls++;
          throw error();
        }),
      { maxAttempts },
    );
    expect(await rested()).toMatchObject({
      state: "FAILED_RETRYABLE",
      holdReason: "effect in doubt",
      attemptCount: 1,
    });
    expect([calls, (await only(id)).state]).toEqual([1, "IN_DOUBT"]);
    await stop();
  });

  it("a handler that passes over the doubt does not succeed", async () => {
    let calls = 0;
    const { rested, stop } = await startHandler(db, async ({ effect }) => {
      await effect({ key: "log", kind: "idempotent", request: {} }, () => {
        if (++calls === 1) throw new Error("no answer");
      }).catch(() => {});
      return "fine";
    });
    expect(await rested()).toMatchObject({ state: "SUCCEEDED", attemptCount: 2 });
    expect(calls).toBe(2);
    await stop();
  });

  it("an effect that the next attempt no longer asks for keeps the job from succeeding", async () => {
    const { id, rested, stop } = await startHandler(db, async ({ effect, job }) => {
      if (job.attemptNo > 1) return "without it";
      return effect({ key: "log", kind: "idempotent", request: {} }, () => {
        throw new Error("no answer");
      });
    });
    expect(await rested()).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_OPEN" } });
    expect((await only(id)).state).toBe("IN_DOUBT");
    expect(await db.oracle.result(id)).toBeUndefined();
    await stop();
  });

  it("a kind that was made more careful is honoured", async () => {
    let calls = 0;
    const { rested, stop } = await startHandler(db, ({ effect, job }) =>
      effect({ key: "pay", kind: job.attemptNo === 1 ? "idempotent" : "unsafe", request: {} }, () => {
        calls++;
        throw new Error("no answer");
      }),
    );
    expect(await rested()).toMatchObject({ holdReason: "effect in doubt", attemptCount: 2 });
    expect(calls).toBe(1);
    await stop();
  });
});

describe("one name, one request", () => {
  it("another request under the same name is refused, for good", async () => {
    const bodies: unknown[] = [];
    const { id, rested, stop } = await startHandler(db, ({ effect, job }) =>
      effect({ key: "pay", kind: "idempotent", request: { attempt: job.attemptNo } }, ({ request }) => {
        bodies.push(request);
        throw new Error("no answer");
      }),
    );
    expect(await rested()).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_CONFLICT" } });
    expect(bodies).toEqual([{ attempt: 1 }]);
    expect((await only(id)).request).toEqual({ attempt: 1 });
    await stop();
  });

  it("the same name twice in one attempt is refused", async () => {
    const { rested, stop } = await startHandler(db, async ({ effect }) => {
      await effect({ key: "a", kind: "idempotent", request: 1 }, () => 1);
      await effect({ key: "a", kind: "idempotent", request: 1 }, () => 1);
    });
    expect(await rested()).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_CONFLICT" } });
    await stop();
  });

  it("the key is made of job and name, and differs between jobs", async () => {
    const keys: string[] = [];
    for (let n = 0; n < 2; n++) {
      const { rested, stop } = await startHandler(db, async ({ effect }) => {
        for (const name of ["a", "b"])
          await effect({ key: name, kind: "idempotent", request: 1 }, ({ idempotencyKey }) =>
            keys.push(idempotencyKey),
          );
      });
      await rested();
      await stop();
    }
    expect(new Set(keys).size).toBe(4);
    for (const key of keys)
      expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe("no fire and forget", () => {
  it("a handler that returns with an effect under way fails, and how it ended is kept", async () => {
    const { id, rested, stop } = await startHandler(db, ({ effect }) => {
      void effect({ key: "late", kind: "unsafe", request: {} }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return "arrived";
      });
      return "done";
    });
    expect(await rested()).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_OPEN" } });
    expect(await only(id)).toMatchObject({ state: "CONFIRMED", response: "arrived" });
    await stop();
  });

  it("a handler that fails beside an effect under way waits for its outcome", async () => {
    const { id, rested, stop } = await startHandler(
      db,
      ({ effect }) =>
        Promise.all([
          effect({ key: "slow", kind: "unsafe", request: {} }, async () => {
            await new Promise((resolve) => setTimeout(resolve, 100));
            return "arrived";
          }),
          Promise.reject(new TerminalError("beside it")),
        ]),
      { maxAttempts: 1 },
    );
    expect(await rested()).toMatchObject({ state: "FAILED_TERMINAL", holdReason: null });
    expect((await only(id)).state).toBe("CONFIRMED");
    await stop();
  });

  it("after a cancel that was acknowledged there is no new intent", async () => {
    const started = gate();
    const go = gate();
    let calls = 0;
    const { id, rested, stop } = await startHandler(db, async ({ effect }) => {
      started.open();
      await go.opened;
      return effect({ key: "pay", kind: "idempotent", request: {} }, () => ++calls);
    });
    await started.opened;
    await db.oracle.cancel(id);
    go.open();
    expect((await rested()).state).toBe("CANCELLED");
    expect([calls, await effectsOf(id)]).toEqual([0, []]);
    await stop();
  });
});

/** A job with an effect that its attempt has dispatched and not ended, as after a kill. */
async function dispatched(kind: string, options: { maxAttempts?: number } = {}): Promise<Lease> {
  const queue = `dispatched-${Math.random()}`;
  await db.oracle.enqueue("any", {}, { queue, maxAttempts: options.maxAttempts ?? 3 });
  const lease = (await claimFrom(store, queue, { workerId: queue })).leases[0] as Lease;
  const rows = await db.as(
    "worker",
    "SELECT * FROM oracle.begin_effects(ARRAY[$1::uuid], ARRAY[$2::uuid], '{e}', '{1}', ARRAY[$3], '{1}', '{h}')",
    [lease.jobId, lease.attemptId, kind],
  );
  expect(rows).toHaveLength(1);
  return lease;
}

const sweep = (lease: Lease) =>
  reclaim(store, { workerId: "w", queues: [lease.queue], leaseSeconds: 60, limit: 5, versions: {} });

describe("whatever ends an attempt leaves its open effects in doubt", () => {
  it.each(["idempotent", "reconcilable"])("reclaim, %s: the next attempt begins", async (kind) => {
    const lease = await dispatched(kind);
    await expireLease(db, lease.jobId);
    expect((await sweep(lease)).leases).toHaveLength(1);
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
  });

  it.each([3, 1])("reclaim, unsafe, %d attempts: the job is held", async (maxAttempts) => {
    const lease = await dispatched("unsafe", { maxAttempts });
    await expireLease(db, lease.jobId);
    expect((await sweep(lease)).leases).toHaveLength(0);
    expect(await db.oracle.get(lease.jobId)).toMatchObject({
      state: "FAILED_RETRYABLE",
      holdReason: "effect in doubt",
      error: { code: "LEASE_EXPIRED" },
    });
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
    expect(await db.sql("SELECT 1 FROM oracle.ready_jobs WHERE job_id = $1", [lease.jobId])).toEqual([]);
  });

  it("acquire by id: takes over a job with a doubt that can be cleared, leaves an unsafe one", async () => {
    const lease = await dispatched("idempotent");
    await expireLease(db, lease.jobId);
    expect(await db.oracle.acquire(lease.jobId, "w")).toMatchObject({ won: true });
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
    const unsafe = await dispatched("unsafe");
    await expireLease(db, unsafe.jobId);
    expect(await db.oracle.acquire(unsafe.jobId, "w")).toEqual({ won: false, why: "has an effect in doubt" });
  });

  it.each([
    ["started", "RUNNING", null],
    ["unstarted", "PENDING", "effect in doubt"],
  ])("a dead process's %s jobs", async (how, state, holdReason) => {
    const lease = await dispatched("unsafe");
    const cause = how === "started" ? "WORKER_CRASHED" : "SHUTDOWN";
    await freeDeadWorker(store, lease.queue, how === "started" ? [lease.jobId] : [], cause);
    expect(await db.oracle.get(lease.jobId)).toMatchObject({ state, holdReason });
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
    if (how === "unstarted") return;
    await sweep(lease);
    expect((await db.oracle.get(lease.jobId))?.holdReason).toBe("effect in doubt");
  });

  it.each(["retryable", "terminal", "released", "snoozed", "cancelled"])("settled as %s", async (kind) => {
    const error = { code: "HANDLER_ERROR", message: "m", retryable: true };
    for (const effectKind of ["idempotent", "unsafe"]) {
      const lease = await dispatched(effectKind);
      await settle(store, [
        { lease, outcome: { kind, error, cause: "SHUTDOWN", delaySeconds: 600 } as never },
      ]);
      expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
      const job = await db.oracle.get(lease.jobId);
      const held = effectKind === "unsafe" && kind !== "cancelled";
      expect(job?.holdReason).toBe(held ? "effect in doubt" : null);
    }
  });

  it("success is refused", async () => {
    const lease = await dispatched("idempotent");
    const outcome = { kind: "succeeded", resultText: "1", contentHash: "h" } as const;
    const settlement = { lease, outcome };
    expect((await settle(store, [settlement])).get(lease.attemptId)).toBe("FAILED_TERMINAL");
    expect(settlement.outcome).toMatchObject({ kind: "terminal", error: { code: "EFFECT_OPEN" } });
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
  });

  it("an intent that commits while the end of its attempt waits for the job is seen", async () => {
    const queue = "race";
    await db.oracle.enqueue("any", {}, { queue });
    const lease = (await claimFrom(store, queue)).leases[0] as Lease;
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("BEGIN");
    await client.query(
      "SELECT * FROM oracle.begin_effects(ARRAY[$1::uuid], ARRAY[$2::uuid], '{e}', '{1}', '{unsafe}', '{1}', '{h}')",
      [lease.jobId, lease.attemptId],
    );
    const settled = settle(store, [
      { lease, outcome: { kind: "released", cause: "SHUTDOWN", delaySeconds: 0 } },
    ]);
    await until(
      "the settlement to wait for the lock",
      async () =>
        (
          await db.sql(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'settle_others'",
          )
        ).length,
    );
    await client.query("COMMIT");
    await client.end();
    await settled;
    expect(await db.oracle.get(lease.jobId)).toMatchObject({
      state: "PENDING",
      holdReason: "effect in doubt",
    });
    expect((await only(lease.jobId)).state).toBe("IN_DOUBT");
  });
});

describe("an attempt that has lost its job", () => {
  it("can neither begin nor end an effect", async () => {
    const lease = await dispatched("idempotent");
    await expireLease(db, lease.jobId);
    await sweep(lease);
    const ids = [lease.jobId, lease.attemptId];
    const begin = (name: string) =>
      db.as(
        "worker",
        "SELECT * FROM oracle.begin_effects(ARRAY[$1::uuid], ARRAY[$2::uuid], ARRAY[$3], '{1}', '{idempotent}', '{1}', '{h}')",
        [...ids, name],
      );
    expect(await begin("e")).toEqual([]);
    expect(await begin("other")).toEqual([]);
    const end = await db.as(
      "worker",
      "SELECT * FROM oracle.end_effects(ARRAY[$1::uuid], ARRAY[$2::uuid], '{e}', '{CONFIRMED}', '{1}', '{h}', '{null}')",
      ids,
    );
    expect(end).toEqual([]);
    expect(await only(lease.jobId)).toMatchObject({ state: "IN_DOUBT" });
  });

  it("does not call when the leave came after its lease was over", async () => {
    const asked = gate();
    const go = gate();
    let calls = 0;
    let thrown: unknown;
    const { id, stop } = await startHandler(
      db,
      async ({ effect, job }) => {
        if (job.attemptNo > 1) return "taken over";
        asked.open();
        await go.opened;
        return effect({ key: "pay", kind: "idempotent", request: {} }, () => ++calls).catch(
          (error: unknown) => {
            thrown = error;
            throw error;
          },
        );
      },
      { leaseSeconds: 0.6 },
    );
    await asked.opened;
    // Nobody gets at the job: neither the intent nor a renewal, until the lease is over.
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("BEGIN");
    await client.query("SELECT 1 FROM oracle.jobs WHERE job_id = $1 FOR UPDATE", [id]);
    go.open();
    await until(
      "the intent to wait",
      async () =>
        (
          await db.sql(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'begin_effects'",
          )
        ).length,
    );
    await until("the lease to run out", async () => {
      const [row] = await db.sql(
        "SELECT lease_expires_at < clock_timestamp() AS over FROM oracle.jobs WHERE job_id = $1",
        [id],
      );
      return row?.over;
    });
    await client.query("COMMIT");
    await client.end();
    await until("the refusal", async () => thrown);
    expect(calls).toBe(0);
    expect(thrown).toMatchObject({ code: "LEASE_LOST" });
    await stop();
  });
});

describe("a person resolves", () => {
  async function held(body: { calls: number }) {
    const running = await startHandler(
      db,
      async ({ effect }) =>
        effect({ key: "wire", kind: "unsafe", request: { cents: 5 } }, () => {
          if (++body.calls === 1) throw new Error("no answer");
          return "sent";
        }),
      { maxAttempts: 1 },
    );
    await running.rested();
    return { ...running, effectId: (await only(running.id)).effectId };
  }
  const ended = async (id: string) => {
    await until("the end", async () => (await db.oracle.get(id))?.completedAt !== null);
    return db.oracle.get(id);
  };

  it("confirmed: the job goes on with the response, without a call", async () => {
    const body = { calls: 0 };
    const { id, effectId, stop } = await held(body);
    await db.oracle.resolveEffect(effectId, {
      outcome: "confirmed",
      evidence: "statement",
      response: "seen",
    });
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED", attemptCount: 2, maxAttempts: 2 });
    expect([body.calls, (await db.oracle.result(id))?.payload]).toEqual([1, "seen"]);
    const [noted] = await db.sql("SELECT action, details FROM oracle.audit WHERE job_id = $1", [id]);
    expect(noted).toMatchObject({
      action: "resolve",
      details: { outcome: "confirmed", evidence: "statement" },
    });
    await stop();
  });

  it("failed: the handler hears that it did not happen", async () => {
    const body = { calls: 0 };
    const { id, effectId, stop } = await held(body);
    await db.oracle.resolveEffect(effectId, { outcome: "failed", evidence: "not on the statement" });
    expect(await ended(id)).toMatchObject({ state: "FAILED_TERMINAL", error: { code: "EFFECT_FAILED" } });
    expect(body.calls).toBe(1);
    await db.oracle.retry(id);
    expect(await ended(id)).toMatchObject({ state: "FAILED_TERMINAL" });
    expect(body.calls).toBe(1);
    await stop();
  });

  it("retry: it is sent once more, with the same key", async () => {
    const body = { calls: 0 };
    const { id, effectId, stop } = await held(body);
    await db.oracle.resolveEffect(effectId, { outcome: "retry", evidence: "not on the statement" });
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED" });
    expect(body.calls).toBe(2);
    expect(await only(id)).toMatchObject({ effectId, state: "CONFIRMED", dispatches: 2 });
    await stop();
  });

  it("only what is in doubt, once, and only what exists", async () => {
    const { id, effectId, stop } = await held({ calls: 0 });
    const finding = { outcome: "confirmed", evidence: "x" } as const;
    await db.oracle.resolveEffect(effectId, finding);
    await expect(db.oracle.resolveEffect(effectId, finding)).rejects.toMatchObject({
      code: "JOB_PRECONDITION",
      jobId: id,
    });
    await expect(db.oracle.resolveEffect(id, finding)).rejects.toMatchObject({ code: "EFFECT_NOT_FOUND" });
    await stop();
  });

  it("the hold stays until the last unsafe doubt is gone", async () => {
    const {
      id,
      rested: held_,
      stop,
    } = await startHandler(db, ({ effect }) =>
      Promise.all(
        ["a", "b"].map((name) =>
          effect({ key: name, kind: "unsafe", request: {} }, () => {
            throw new Error("no answer");
          }),
        ),
      ),
    );
    await held_();
    const [a, b] = await effectsOf(id);
    const finding = { outcome: "confirmed", evidence: "x" } as const;
    await db.oracle.resolveEffect(a?.effectId as string, finding);
    expect((await db.oracle.get(id))?.holdReason).toBe("effect in doubt");
    await db.oracle.resolveEffect(b?.effectId as string, finding);
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED" });
    await stop();
  });

  it("an operator's retry of a job with an unsafe doubt holds it again", async () => {
    const { id, stop } = await held({ calls: 0 });
    await db.oracle.cancel(id);
    expect(await db.oracle.retry(id)).toMatchObject({ state: "PENDING", holdReason: "effect in doubt" });
    expect((await rested(db, id)).attemptCount).toBe(1);
    await stop();
  });

  it("finds those in doubt, oldest first", async () => {
    const found = await findEffects(store, { state: "IN_DOUBT", limit: 1000 });
    expect(found.length).toBeGreaterThan(1);
    const times = found.map(({ inDoubtAt }) => inDoubtAt?.getTime() as number);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
