import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { findArtifact, listArtifacts } from "../dist/store/artifact.js";
import { cancel, retry } from "../dist/store/control.js";
import type { Database } from "../dist/store/database.js";
import { enqueue } from "../dist/store/enqueue.js";
import { list } from "../dist/store/list.js";
import { getEffects } from "../dist/store/list-effects.js";
import { getLogs } from "../dist/store/logs.js";
import { approve, reject } from "../dist/store/plan.js";
import { getAttempts, getJob, getResult, requireJob } from "../dist/store/read.js";
import { renew } from "../dist/store/renew.js";
import { resolve } from "../dist/store/resolve.js";
import { settle } from "../dist/store/settle.js";
import { getSteps } from "../dist/store/steps.js";
import { toNewJob } from "../dist/submit.js";
import { workerDatabase } from "./support/leases.js";
import { useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";
import { THIEF, useVictim, VICTIM } from "./support/victim.js";

// A program that acts for one tenant at a time, and programs that know no bounds, try for what is not theirs.

const db = useTestDatabase();
const login = useLogins(db);
const victim = useVictim(db);
let server: Database;
beforeAll(async () => {
  const program = await login({ roles: ["server"] });
  server = db.oracle.db.with({ url: program.url, role: "server", maxConnections: 1 });
  return () => server.close();
});

/** What an id of the victim's says, and what one says that nobody has; the id itself left out. */
async function answers(ask: (id: string) => Promise<unknown>, id: string): Promise<[unknown, unknown]> {
  const answer = (id: string) =>
    ask(id).then(
      (value) => ({ value }),
      (error: Error & { code?: string }) => {
        // A mistake of the test's own would look the same for both.
        if (error.code === undefined) throw error;
        return { code: error.code, message: error.message.replaceAll(id, "ID") };
      },
    );
  return [await answer(id), await answer(randomUUID())];
}

describe("a program that acts for one tenant", () => {
  const asThief = <T>(work: (tenant: Database) => Promise<T>) => server.asTenant(THIEF, work);
  const limits = { maxBytes: 1000, maxDepth: 10 };
  const submit = (tenant: Database, options: Parameters<typeof toNewJob>[2]) =>
    enqueue(tenant, [toNewJob("pay", { amount: 7 }, { tenant: THIEF, ...options }, limits)]);

  const takeOver = { name: "take-over", text: "SELECT {schema}.take_over_steps($1, 'x')" };

  it("does what it may for its own tenant", async () => {
    const [own] = await asThief((tenant) => submit(tenant, { key: "mine" }));
    const id = own?.jobId ?? "";
    expect((await asThief((tenant) => cancel(tenant, id))).state).toBe("CANCELLED");
    expect((await asThief((tenant) => retry(tenant, id))).state).toBe("PENDING");
    await asThief((tenant) => submit(tenant, { replayOf: id }));
    expect(
      (await asThief((tenant) => list(tenant, {}))).items.every(({ tenantId }) => tenantId === THIEF),
    ).toBe(true);
    expect(await db.sql("SELECT action FROM oracle.audit WHERE job_id = $1 ORDER BY audit_id", [id])).toEqual(
      [{ action: "cancel" }, { action: "retry" }],
    );
  });

  it.each<[string, (tenant: Database, id: string) => Promise<unknown>]>([
    ["get", (tenant, id) => getJob(tenant, id)],
    ["require", (tenant, id) => requireJob(tenant, id)],
    ["attempts", (tenant, id) => getAttempts(tenant, id)],
    ["result", (tenant, id) => getResult(tenant, id)],
    ["logs", (tenant, id) => getLogs(tenant, id, {})],
    ["artifacts", (tenant, id) => listArtifacts(tenant, id)],
    ["steps", (tenant, id) => getSteps(tenant, id)],
    ["effects", (tenant, id) => getEffects(tenant, id)],
    ["cancel", (tenant, id) => cancel(tenant, id)],
    ["retry", (tenant, id) => retry(tenant, id)],
    ["replay", (tenant, id) => submit(tenant, { replayOf: id })],
    ["approve", (tenant, id) => approve(tenant, id)],
    ["reject", (tenant, id) => reject(tenant, id, "no")],
    ["resolve its effect", (tenant, id) => resolve(tenant, id, { outcome: "failed", evidence: "x" })],
    ["take over its steps", (tenant, id) => tenant.query(takeOver, [id])],
    [
      "a page after",
      (tenant, id) =>
        list(tenant, { after: id }).then(({ items }) => items.every((job) => job.tenantId === THIEF)),
    ],
  ])("finds another tenant's job absent: %s", async (_name, ask) => {
    for (const id of [victim.done, victim.waiting, victim.planned, victim.running.jobId, victim.effect]) {
      const [theirs, nobodys] = await answers((id) => asThief((tenant) => ask(tenant, id)), id);
      expect(theirs).toEqual(nobodys);
    }
    expect((await db.oracle.get(victim.waiting))?.state).toBe("PENDING");
    expect((await db.oracle.get(victim.planned))?.holdReason).toBe("awaiting approval");
    const effects = await db.sql("SELECT state FROM oracle.effects WHERE effect_id = $1", [victim.effect]);
    expect(effects).toEqual([{ state: "IN_DOUBT" }]);
    expect((await db.oracle.get(victim.running.jobId))?.cancelRequestedAt).toBeNull();
  });

  it("finds another tenant's artifact absent by its digest", async () => {
    const digest = (await listArtifacts(db.oracle.db, victim.done))[0]?.sha256 ?? "";
    expect((await findArtifact(db.oracle.db, digest))?.artifact).toMatchObject({ jobId: victim.done });
    expect(await asThief((tenant) => findArtifact(tenant, digest))).toBeUndefined();
  });

  it("cannot submit, or note anything, in another's name or about another's job", async () => {
    await expect(asThief((tenant) => submit(tenant, { tenant: VICTIM }))).rejects.toThrow(
      /row-level security/,
    );
    const note = (tenant: string) => (id: string) =>
      server.asTenant(THIEF, async (database) =>
        database.query(
          {
            name: "note",
            text: "INSERT INTO {schema}.audit (tenant_id, job_id, action) VALUES ($1, $2, 'x')",
          },
          [tenant, id],
        ),
      );
    const [theirs, nobodys] = await answers(note(THIEF), victim.waiting);
    expect(theirs).toEqual(nobodys);
    expect(theirs).toMatchObject({ message: "audit.insert refused: the tenant has no such job" });
    await expect(note(VICTIM)(victim.waiting)).rejects.toMatchObject({ code: "42501" });
  });

  it("leaves nothing of a tenant on its connection, whatever happened in between", async () => {
    const state = {
      name: "state",
      text: "SELECT current_setting('{schema}.tenant_id', true) AS tenant, current_user::text AS acting, count(*)::int AS jobs FROM {schema}.jobs",
    };
    const inside = await asThief((tenant) => tenant.query(state, []));
    expect(inside).toMatchObject([{ tenant: THIEF, acting: "oracle_server" }]);
    await expect(asThief(() => Promise.reject(new Error("on purpose")))).rejects.toThrow("on purpose");
    await expect(
      asThief((tenant) => tenant.query({ name: "bad", text: "SELECT 1/0" }, [])),
    ).rejects.toThrow();
    // One connection in this pool: it is the same.
    expect(await server.query(state, [])).toEqual([{ tenant: "", acting: "oracle_server", jobs: 0 }]);
    const seen = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        server.asTenant(n % 2 ? THIEF : VICTIM, async (tenant) => (await list(tenant, {})).items),
      ),
    );
    for (const [n, items] of seen.entries()) {
      expect(new Set(items.map(({ tenantId }) => tenantId))).toEqual(new Set([n % 2 ? THIEF : VICTIM]));
    }
  });

  it("is refused an empty tenant, and the database shows nothing for one", async () => {
    await expect(server.asTenant("", (tenant) => list(tenant, {}))).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect((await list(server, {})).items).toEqual([]);
    await expect(submit(server, {})).rejects.toThrow(/row-level security/);
    const client = await (await login({ roles: ["server"] })).connect();
    await client.query("SET oracle.tenant_id = ''");
    expect((await client.query("SELECT FROM oracle.jobs")).rows).toEqual([]);
    await expect(client.query("SELECT oracle.enqueue('t', '{}')")).rejects.toMatchObject({ code: "42501" });
  });

  it("acts for one tenant at a time", async () => {
    const nested = asThief((tenant) => tenant.asTenant(VICTIM, (other) => list(other, {})));
    await expect(nested).rejects.toMatchObject({ code: "INTERNAL" });
  });
});

describe("rows that belong to a job", () => {
  it.each([
    ["ready_jobs", "(queue_name, tenant_id, rank, ready_at, job_id) VALUES ('q', $1, 0, now(), $2)"],
    ["timers", "(due_at, tenant_id, kind, job_id) VALUES (now(), $1, 'run', $2)"],
    ["audit", "(tenant_id, action, job_id) VALUES ($1, 'x', $2)"],
  ])("have its tenant, also when a worker writes them: %s", async (table, rest) => {
    await expect(
      db.as("worker", `INSERT INTO oracle.${table} ${rest}`, [THIEF, victim.done]),
    ).rejects.toThrow(`${table}.insert refused: the tenant has no such job`);
  });

  it("come from functions alone, which copy the job's tenant", async () => {
    const grants = await db.sql(
      `SELECT g.grantee, g.table_name, g.privilege_type, g.column_name FROM information_schema.column_privileges g
       WHERE g.table_schema = 'oracle' AND g.table_name IN ('jobs', 'attempts', 'past_attempts', 'attempt_reports', 'results', 'artifacts', 'attempt_logs', 'steps', 'effects')
         AND g.column_name IN ('tenant_id', 'job_id', 'attempt_id') AND g.privilege_type <> 'SELECT'
         AND g.grantee <> 'oracle_owner'`,
    );
    expect(grants).toEqual([]);
  });

  it("unique keys that people choose begin with the tenant", async () => {
    const rows = await db.sql(
      `SELECT i.indexrelid::regclass::text AS name, array_agg(a.attname::text ORDER BY k.place) AS columns
       FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
       WHERE c.relnamespace = 'oracle'::regnamespace AND i.indisunique
         AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
       GROUP BY 1`,
    );
    // Ids and hashes that are minted or random meet in no way that tells anything; a login is the server's own name.
    const random = [
      "job_id",
      "artifact_id",
      "effect_id",
      "token_id",
      "token_hash",
      "audit_id",
      "effect_id",
      "worker_id",
      "opening_id",
      "login",
    ];

    const others = rows.filter(
      ({ columns }) =>
        columns[0] !== "tenant_id" && !columns.some((column: string) => random.includes(column)),
    );
    expect(others).toEqual([]);
  });
});

describe("a forged or guessed attempt", () => {
  it("settles and renews nothing", async () => {
    const store = workerDatabase(db);
    const before = await db.sql("SELECT * FROM oracle.jobs WHERE job_id = $1", [victim.running.jobId]);
    const other = (await db.sql("SELECT attempt_id FROM oracle.attempts WHERE job_id = $1", [victim.done]))[0]
      ?.attempt_id;
    for (const attemptId of [randomUUID(), other, victim.running.jobId]) {
      const forged = { ...victim.running, attemptId };
      expect((await renew(store, [forged], 60)).size).toBe(0);
      await settle(store, [
        { lease: forged, outcome: { kind: "succeeded", resultText: "1", contentHash: "h" } },
      ]);
      await settle(store, [
        {
          lease: forged,
          outcome: { kind: "terminal", error: { code: "HANDLER_ERROR", message: "m", retryable: false } },
        },
      ]);
    }
    expect(await db.sql("SELECT * FROM oracle.jobs WHERE job_id = $1", [victim.running.jobId])).toEqual(
      before,
    );
    expect(await db.sql("SELECT FROM oracle.results WHERE job_id = $1", [victim.running.jobId])).toEqual([]);
    await store.close();
  });

  it("cannot be guessed: it is random, not counted", () => {
    expect(victim.running.attemptId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  });

  it.each(["worker", "server", "tenant"] as const)(
    "and no login of %s changes or removes what is on record",
    async (role) => {
      const client = await (
        await login(role === "tenant" ? { tenantId: THIEF } : { roles: [role] })
      ).connect();
      for (const sql of [
        "UPDATE oracle.results SET result_payload = '1'",
        "DELETE FROM oracle.results",
        "INSERT INTO oracle.results (job_id, attempt_id, tenant_id, content_hash, result_payload) VALUES (gen_random_uuid(), gen_random_uuid(), 'thief', 'h', '1')",
        "DELETE FROM oracle.attempts",
        "UPDATE oracle.attempts SET attempt_id = gen_random_uuid()",
        "INSERT INTO oracle.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id) VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'thief', 'me')",
        "UPDATE oracle.effects SET state = 'CONFIRMED'",
        "DELETE FROM oracle.effects",
        "DELETE FROM oracle.steps",
        "INSERT INTO oracle.artifacts (artifact_id, job_id, tenant_id) VALUES (gen_random_uuid(), gen_random_uuid(), 'thief')",
        "DELETE FROM oracle.artifacts",
        "DELETE FROM oracle.audit",
        "UPDATE oracle.audit SET login = 'somebody else'",
        "INSERT INTO oracle.audit (tenant_id, job_id, action, login) VALUES ('thief', gen_random_uuid(), 'x', 'somebody else')",
      ]) {
        await expect(client.query(sql), sql).rejects.toMatchObject({ code: "42501" });
      }
    },
  );
});
