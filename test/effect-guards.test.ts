import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import type { Database } from "../dist/store/database.js";
import { reclaim } from "../dist/store/reclaim.js";
import { claimFrom, expireLease, workerDatabase } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

// What the database refuses about steps and effects, to whoever asks.

const db = useTestDatabase();
let store: Database;
beforeAll(() => {
  store = workerDatabase(db);
});
afterAll(() => store.close());

let number = 0;
async function running(tenant = "default"): Promise<Lease> {
  const queue = `guarded-${number++}`;
  await db.oracle.enqueue("any", {}, { queue, tenant });
  return (await claimFrom(store, queue)).leases[0] as Lease;
}

const states = ["PLANNED", "DISPATCHED", "CONFIRMED", "FAILED", "IN_DOUBT"] as const;
type State = (typeof states)[number];

/** What the CHECKs want of each state, so that only the graph can refuse a change to it. */
const columns: Record<State, string> = {
  PLANNED: "settled_at = NULL, in_doubt_at = NULL, response = NULL, response_hash = NULL",
  DISPATCHED:
    "dispatched_at = now(), settled_at = NULL, in_doubt_at = NULL, response = NULL, response_hash = NULL",
  CONFIRMED:
    "dispatched_at = now(), settled_at = now(), in_doubt_at = NULL, response = '1', response_hash = 'h'",
  FAILED:
    "dispatched_at = now(), settled_at = now(), in_doubt_at = NULL, response = NULL, response_hash = NULL",
  IN_DOUBT:
    "dispatched_at = now(), settled_at = NULL, in_doubt_at = now(), response = NULL, response_hash = NULL",
};

async function effectIn(state: State, extra = ""): Promise<string> {
  const { jobId } = await running();
  await db.as(
    "owner",
    `INSERT INTO oracle.effects (job_id, effect_id, seq, attempt_no, kind, state, tenant_id, name, request_hash, request)
     VALUES ($1, oracle.effect_id($1, 'e'), 1, 1, 'unsafe', 'PLANNED', 'default', 'e', 'h', '1')`,
    [jobId],
  );
  // Past the trigger, which is what is tested.
  await db.sql("ALTER TABLE oracle.effects DISABLE TRIGGER effects_legal_change");
  await db.sql(
    `UPDATE oracle.effects SET state = '${state}', ${columns[state]} ${extra} WHERE job_id = '${jobId}'`,
  );
  await db.sql("ALTER TABLE oracle.effects ENABLE TRIGGER effects_legal_change");
  return jobId;
}

const change = (jobId: string, set: string) =>
  db.sql(`UPDATE oracle.effects SET ${set} WHERE job_id = '${jobId}'`).then(
    () => true,
    (error: Error) => {
      expect(error.message).toMatch(/does not go this way/);
      return false;
    },
  );

describe("the graph of an effect, also for a superuser", () => {
  const allowed: Record<State, State[]> = {
    PLANNED: ["PLANNED", "FAILED"],
    DISPATCHED: ["DISPATCHED", "CONFIRMED", "FAILED", "IN_DOUBT"],
    CONFIRMED: [],
    FAILED: ["DISPATCHED"],
    IN_DOUBT: ["DISPATCHED", "CONFIRMED", "FAILED", "IN_DOUBT"],
  };
  for (const from of states) {
    it(`from ${from} allows ${allowed[from].join(", ") || "nothing"}`, async () => {
      const accepted: State[] = [];
      for (const to of states) {
        const jobId = await effectIn(from);
        if (await change(jobId, `state = '${to}', ${columns[to]}`)) accepted.push(to);
      }
      expect(accepted).toEqual(allowed[from]);
    });
  }

  it("an approved plan is sent, and a doubt goes back to the plan by a person's word only", async () => {
    const approved = await effectIn("PLANNED", ", approved_at = now()");
    expect(await change(approved, `state = 'DISPATCHED', ${columns.DISPATCHED}`)).toBe(true);
    const doubtful = await effectIn("IN_DOUBT");
    const back = `state = 'PLANNED', ${columns.PLANNED}`;
    expect(await change(doubtful, back)).toBe(false);
    expect(await change(doubtful, `${back}, resolved_by = 'me', evidence = 'e'`)).toBe(true);
  });

  it("what a person has declared failed is not sent again", async () => {
    const jobId = await effectIn("FAILED", ", resolved_by = 'me', evidence = 'e'");
    expect(await change(jobId, `state = 'DISPATCHED', ${columns.DISPATCHED}`)).toBe(false);
  });

  it.each([
    "request = '2'",
    "request_hash = 'x'",
    "name = 'x'",
    "effect_id = gen_random_uuid()",
    "tenant_id = 'x'",
  ])("%s is refused in every state", async (set) => {
    for (const state of states) expect(await change(await effectIn(state), set)).toBe(false);
  });
});

describe("constraints by name", () => {
  it.each([
    ["doubt_has_its_time", "state = 'IN_DOUBT'"],
    ["settled_has_its_time", "state = 'FAILED'"],
    ["confirmed_has_a_response", "state = 'CONFIRMED', settled_at = now()"],
    ["resolved_with_evidence", "resolved_by = 'me'"],
  ])("%s", async (constraint, set) => {
    const jobId = await effectIn("DISPATCHED");
    await expect(db.sql(`UPDATE oracle.effects SET ${set} WHERE job_id = '${jobId}'`)).rejects.toMatchObject({
      constraint,
    });
  });
});

describe("what the application's roles may not do", () => {
  const steps = "(job_id, seq, attempt_no, tenant_id, name, value_hash, value)";
  it.each([
    [
      "insert a step",
      `INSERT INTO oracle.steps ${steps} VALUES (gen_random_uuid(), 1, 1, 'default', 'n', 'h', '1')`,
    ],
    ["change a step", "UPDATE oracle.steps SET value = '2'"],
    ["delete a step", "DELETE FROM oracle.steps"],
    ["insert an effect", "INSERT INTO oracle.effects (job_id) VALUES (gen_random_uuid())"],
    ["change an effect", "UPDATE oracle.effects SET state = 'CONFIRMED'"],
    ["delete an effect", "DELETE FROM oracle.effects"],
    ["truncate", "TRUNCATE oracle.effects"],
  ])("%s", async (_what, sql) => {
    for (const role of ["worker", "server", "tenant"] as const)
      await expect(db.as(role, sql)).rejects.toMatchObject({ code: "42501" });
  });

  it.each([
    "oracle.remember_steps('{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    "oracle.begin_effects('{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    "oracle.end_effects('{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    "oracle.settle_others('[]', 20)",
    "oracle.free_worker('w', '{}', 20, 'x')",
  ])("write for an attempt without being a worker: %s", async (call) => {
    for (const role of ["server", "tenant"] as const)
      await expect(db.as(role, `SELECT ${call}`)).rejects.toMatchObject({ code: "42501" });
  });

  it("not even a superuser changes a step", async () => {
    const { jobId } = await running();
    await db.as("owner", `INSERT INTO oracle.steps ${steps} VALUES ($1, 1, 1, 'default', 'n', 'h', '1')`, [
      jobId,
    ]);
    await expect(db.sql("UPDATE oracle.steps SET value = '2'")).rejects.toThrow(/never changes/);
  });

  it("see or decide about another tenant's effects", async () => {
    const lease = await running("theirs");
    await db.as(
      "worker",
      "SELECT oracle.begin_effects(ARRAY[$1::uuid], ARRAY[$2::uuid], '{e}', '{1}', '{unsafe}', '{1}', '{h}')",
      [lease.jobId, lease.attemptId],
    );
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("SET ROLE oracle_server");
    const as = async (tenant: string, sql: string) => {
      await client.query("BEGIN");
      await client.query("SELECT set_config('oracle.tenant_id', $1, true)", [tenant]);
      const { rows } = await client.query(sql);
      await client.query("ROLLBACK");
      return rows;
    };
    await expireLease(db, lease.jobId);
    await reclaim(store, { workerId: "w", queues: [lease.queue], leaseSeconds: 60, limit: 1, versions: {} });
    const seen = "SELECT state::text FROM oracle.effects";
    const [{ id } = { id: "" }] = await db.sql("SELECT oracle.effect_id($1, 'e') AS id", [lease.jobId]);
    const resolve = `SELECT state FROM oracle.resolve_effect('${id}', 'failed', 'e', NULL, NULL)`;
    expect(await as("theirs", seen)).toEqual([{ state: "IN_DOUBT" }]);
    expect(await as("theirs", resolve)).toEqual([{ state: "FAILED" }]);
    for (const tenant of ["ours", ""]) {
      expect(await as(tenant, seen)).toEqual([]);
      expect(await as(tenant, resolve)).toEqual([]);
      expect(await as(tenant, `SELECT oracle.decide_plan('${lease.jobId}', NULL) AS ok`)).toEqual([
        { ok: false },
      ]);
    }
    await client.end();
  });
});
