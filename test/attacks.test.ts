import { randomUUID } from "node:crypto";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../dist/core/job.js";
import { cancel, retry } from "../dist/store/control.js";
import type { Database } from "../dist/store/database.js";
import { enqueue } from "../dist/store/enqueue.js";
import { getAttempts, getJob, getResult, list, requireJob } from "../dist/store/read.js";
import { renew } from "../dist/store/renew.js";
import { settle } from "../dist/store/settle.js";
import { toNewJob } from "../dist/submit.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";

// One tenant's login, and one program for many tenants, try for another tenant's rows. Real logins without any
// right of their own; docs/tenants.md says what must hold.

const db = useTestDatabase();
const login = useLogins(db);
const THIEF = "thief";
const VICTIM = "victim";

let thief: TestLogin;
let server: Database;
/** The victim's: one that succeeded, one that waits, one that runs. */
let done: string;
let waiting: string;
let running: Lease;

beforeAll(async () => {
  thief = await login({ tenantId: THIEF });
  const program = await login({ roles: ["server"] });
  server = db.oracle.db.with({ url: program.url, role: "server", maxConnections: 1 });
  const store = workerDatabase(db);
  const submit = async (queue: string, options = {}) =>
    (await db.oracle.enqueue("pay", { amount: 7 }, { tenant: VICTIM, queue, ...options })).id;
  done = await submit("done", { key: "invoice-1" });
  const [lease] = (await claimFrom(store, "done")).leases as [Lease];
  await settle(store, [{ lease, outcome: { kind: "succeeded", resultText: '"paid"', contentHash: "h" } }]);
  await db.as(
    "worker",
    `INSERT INTO oracle.artifacts (artifact_id, job_id, attempt_no, attempt_id, size, tenant_id, artifact_type, sha256, artifact_payload)
     VALUES (gen_random_uuid(), $1, 1, $2, 2, $3, 'note', 'x', '{}')`,
    [done, lease.attemptId, VICTIM],
  );
  waiting = await submit("waiting", { key: "invoice-2", dedupe: "active", deadline: 3600 });
  await submit("later", { runAfter: 3600 });
  await db.oracle.cancel(await submit("cancelled"));
  await submit("running");
  running = (await claimFrom(store, "running")).leases[0] as Lease;
  await store.close();
  return () => server.close();
});

/** What an id of the victim's says, and what one says that nobody has; the id itself left out. */
async function answers(ask: (id: string) => Promise<unknown>, id: string): Promise<[unknown, unknown]> {
  const answer = (id: string) =>
    ask(id).then(
      (value) => ({ value }),
      (error: Error & { code?: string }) => ({
        code: error.code,
        message: error.message.replaceAll(id, "ID"),
      }),
    );
  return [await answer(id), await answer(randomUUID())];
}

describe("another tenant's job, by SQL", () => {
  it("is in no table that a tenant's login can read", async () => {
    const client = await thief.connect();
    await client.query("SELECT oracle.enqueue('own', '{}')");
    const tables = await db.sql(
      `SELECT DISTINCT c.oid::regclass::text AS name, a.attname AS link FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
       WHERE c.relnamespace = 'oracle'::regnamespace AND c.relkind = 'r' AND a.attname IN ('tenant_id', 'job_ids')`,
    );
    const seen: Record<string, unknown> = {};
    for (const { name, link } of tables) {
      seen[name] = await client.query(`SELECT DISTINCT ${link} AS owner FROM ${name}`).then(
        ({ rows }) => rows.map(({ owner }) => owner),
        (error) => error.code,
      );
    }
    expect(Object.values(seen).flat()).not.toContain(VICTIM);
    expect(seen).toMatchObject({
      "oracle.jobs": [THIEF],
      "oracle.attempts": [],
      "oracle.results": [],
      "oracle.artifacts": [],
      "oracle.claims": "42501",
      "oracle.ready_jobs": "42501",
      "oracle.timers": "42501",
      "oracle.audit": "42501",
      "oracle.tokens": "42501",
      "oracle.tenant_logins": "42501",
    });
    for (const table of ["queues", "workers"]) {
      await expect(client.query(`SELECT * FROM oracle.${table}`), table).rejects.toMatchObject({
        code: "42501",
      });
    }
  });

  it("does not stand in the way of the same key, the same id as key, or the same specification", async () => {
    const client = await thief.connect();
    for (const [input, options] of [
      ['{"other": 1}', "key => 'invoice-1'"],
      ['{"amount": 7}', "key => 'invoice-2'"],
      ['{"amount": 7}', `key => '${done}'`],
      ['{"amount": 7}', "dedupe => 'active'"],
      ['{"amount": 8}', "dedupe => 'result'"],
    ]) {
      const { rows } = await client.query(`SELECT * FROM oracle.enqueue('pay', '${input}', ${options})`);
      expect(rows[0].created, options).toBe(true);
    }
    const { rows } = await client.query(
      "SELECT created FROM oracle.enqueue('pay', '{\"amount\": 7}', dedupe => 'result')",
    );
    expect(rows[0].created, "the victim's result").toBe(true);
  });

  it("cannot be submitted in its name", async () => {
    const client = await thief.connect();
    for (const tenant of [VICTIM, "default", "nobody"]) {
      const submitted = client.query("SELECT oracle.enqueue('pay', '{}', tenant_id => $1)", [tenant]);
      await expect(submitted).rejects.toMatchObject({
        code: "42501",
        message: "a job of another tenant than the caller's violates row-level security",
      });
    }
  });

  it("cannot be written", async () => {
    const client = await thief.connect();
    for (const sql of [
      "UPDATE oracle.jobs SET state = 'CANCELLED'",
      "DELETE FROM oracle.jobs",
      "INSERT INTO oracle.jobs (job_type, input_payload, idempotency_key, spec_hash) VALUES ('t', '1', 'k', 'h')",
      "UPDATE oracle.results SET result_payload = '1'",
      "DELETE FROM oracle.results",
      "UPDATE oracle.attempts SET cause = 'x'",
      "DELETE FROM oracle.attempts",
      "INSERT INTO oracle.tenant_logins VALUES (session_user, 'victim')",
      "UPDATE oracle.tenant_logins SET tenant_id = 'victim'",
      "TRUNCATE oracle.jobs",
      "CREATE TABLE oracle.mine (n int)",
    ]) {
      await expect(client.query(sql), sql).rejects.toMatchObject({ code: "42501" });
    }
  });
});

describe("a tenant's login", () => {
  const tenants = async (client: pg.Client) =>
    (await client.query("SELECT DISTINCT tenant_id FROM oracle.jobs")).rows.map(({ tenant_id }) => tenant_id);

  it.each([
    "SET oracle.tenant_id = 'victim'",
    "SELECT set_config('oracle.tenant_id', 'victim', false)",
    "BEGIN; SET LOCAL oracle.tenant_id = 'victim'",
    "SET ROLE oracle_tenant; SET oracle.tenant_id = 'victim'",
    "SET ROLE NONE; SET oracle.tenant_id = ''",
  ])("stays with its tenant after: %s", async (sql) => {
    const client = await thief.connect();
    await client.query(sql);
    expect(await tenants(client)).toEqual([THIEF]);
    await expect(
      client.query("SELECT oracle.enqueue('t', '{}', tenant_id => 'victim')"),
    ).rejects.toMatchObject({
      code: "42501",
    });
  });

  it("stays with its tenant when its connection begins with another", async () => {
    const client = await thief.connect({ options: "-c oracle.tenant_id=victim" });
    expect((await client.query("SHOW oracle.tenant_id")).rows).toEqual([{ "oracle.tenant_id": VICTIM }]);
    expect(await tenants(client)).toEqual([THIEF]);
  });

  it.each([
    "SET ROLE oracle_server",
    "SET ROLE oracle_worker",
    "SET ROLE oracle_owner",
    "SET SESSION AUTHORIZATION oracle_owner",
    "GRANT oracle_server TO CURRENT_USER",
    "ALTER TABLE oracle.jobs DISABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON oracle.jobs USING (true)",
    "SELECT oracle.check_tenants('{}')",
    "SELECT oracle.verify_token(sha256('x'))",
    "SELECT oracle.claim_jobs('{}', '{}', '{}', '{}', '{}', '{}', 'me', 60, gen_random_uuid(), '{}')",
  ])("may not: %s", async (sql) => {
    await expect((await thief.connect()).query(sql)).rejects.toMatchObject({ code: "42501" });
  });

  it("that switches row security off is refused rather than shown everything", async () => {
    const client = await thief.connect();
    await client.query("SET row_security = off");
    await expect(client.query("SELECT * FROM oracle.jobs")).rejects.toMatchObject({ code: "42501" });
  });

  it("without a tenant sees nothing and submits nothing", async () => {
    const nobody = await login({ tenantId: "soon-gone" });
    await db.sql("DELETE FROM oracle.tenant_logins WHERE login = $1", [nobody.name]);
    const client = await nobody.connect();
    for (const set of ["", "SET oracle.tenant_id = ''", "SET oracle.tenant_id = 'victim'"]) {
      await client.query(set);
      expect(await tenants(client)).toEqual([]);
      await expect(client.query("SELECT oracle.enqueue('t', '{}')")).rejects.toMatchObject({ code: "42501" });
    }
  });

  it("learns no values from statistics", async () => {
    await db.sql("ANALYZE oracle.jobs");
    expect(await db.sql("SELECT FROM pg_stats WHERE schemaname = 'oracle'")).not.toEqual([]);
    const { rows } = await (await thief.connect()).query("SELECT FROM pg_stats WHERE schemaname = 'oracle'");
    expect(rows).toEqual([]);
  });
});

describe("names and functions of one's own", () => {
  it("take nothing of the schema's place, and are shown no other rows", async () => {
    const schema = `evil_${thief.name}`;
    await db.sql(`CREATE SCHEMA ${schema} AUTHORIZATION ${thief.name}`);
    const client = await thief.connect();
    const shown: string[] = [];
    client.on("notice", ({ message = "" }) => shown.push(message));
    await client.query(
      `SET search_path = ${schema}, pg_temp, pg_catalog;
       CREATE TEMP TABLE tenant_logins AS SELECT session_user::name AS login, 'victim'::text AS tenant_id;
       CREATE TABLE tenant_logins AS SELECT session_user::name AS login, 'victim'::text AS tenant_id;
       CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql AS $$ SELECT 'victim' $$;
       CREATE FUNCTION pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
       CREATE FUNCTION current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'victim' $$;
       CREATE FUNCTION always(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
       CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = always);
       CREATE FUNCTION peek(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
         $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$`,
    );
    // Called before the policy's own test, a function would be shown every row.
    const { rows } = await client.query("SELECT DISTINCT tenant_id FROM oracle.jobs WHERE peek(tenant_id)");
    expect(rows).toEqual([{ tenant_id: THIEF }]);
    expect(shown).toContain(THIEF);
    expect(shown).not.toContain(VICTIM);
    await expect(
      client.query("SELECT oracle.enqueue('t', '{}', tenant_id => 'victim')"),
    ).rejects.toMatchObject({
      code: "42501",
    });
    await db.sql(`DROP SCHEMA ${schema} CASCADE`);
  });

  it("functions with the owner's rights are pinned, closed to everybody, and few", async () => {
    const rows = await db.sql(
      `SELECT p.proname AS name, p.proconfig::text LIKE '%search_path=%' AS pinned, p.prosecdef AS definer,
         has_function_privilege('public', p.oid, 'EXECUTE') AS open,
         has_function_privilege('oracle_tenant', p.oid, 'EXECUTE') AS tenant,
         has_function_privilege('oracle_server', p.oid, 'EXECUTE') AS server
       FROM pg_proc p WHERE p.pronamespace = 'oracle'::regnamespace ORDER BY 1`,
    );
    const names = (which: (row: (typeof rows)[number]) => boolean) =>
      rows.filter(which).map(({ name }) => name);
    expect(names(({ open }) => open)).toEqual([]);
    expect(names(({ definer, pinned }) => definer && !pinned)).toEqual([]);
    expect(names(({ tenant }) => tenant)).toEqual(["current_tenant", "enqueue"]);
    expect(names(({ server }) => server)).toEqual([
      "current_tenant",
      "enqueue",
      "enqueue_jobs",
      "key_as_id",
      "verify_token",
    ]);
  });
});

describe("a program that acts for one tenant", () => {
  const asThief = <T>(work: (tenant: Database) => Promise<T>) => server.asTenant(THIEF, work);
  const limits = { maxBytes: 1000, maxDepth: 10 };
  const submit = (tenant: Database, options: Parameters<typeof toNewJob>[2]) =>
    enqueue(tenant, [toNewJob("pay", { amount: 7 }, { tenant: THIEF, ...options }, limits)]);

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
    ["cancel", (tenant, id) => cancel(tenant, id)],
    ["retry", (tenant, id) => retry(tenant, id)],
    ["replay", (tenant, id) => submit(tenant, { replayOf: id })],
    [
      "a page after",
      (tenant, id) =>
        list(tenant, { after: id }).then(({ items }) => items.every((job) => job.tenantId === THIEF)),
    ],
  ])("finds another tenant's job absent: %s", async (_name, ask) => {
    for (const id of [done, waiting, running.jobId]) {
      const [theirs, nobodys] = await answers((id) => asThief((tenant) => ask(tenant, id)), id);
      expect(theirs).toEqual(nobodys);
    }
    expect((await db.oracle.get(waiting))?.state).toBe("PENDING");
    expect((await db.oracle.get(running.jobId))?.cancelRequestedAt).toBeNull();
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
    const [theirs, nobodys] = await answers(note(THIEF), waiting);
    expect(theirs).toEqual(nobodys);
    expect(theirs).toMatchObject({ message: "audit.insert refused: the tenant has no such job" });
    await expect(note(VICTIM)(waiting)).rejects.toMatchObject({ code: "42501" });
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
    [
      "artifacts",
      "(tenant_id, artifact_id, job_id, attempt_no, attempt_id, size, artifact_type, sha256, artifact_payload) VALUES ($1, gen_random_uuid(), $2, 1, gen_random_uuid(), 0, 'a', 'x', '{}')",
    ],
  ])("have its tenant, also when a worker writes them: %s", async (table, rest) => {
    await expect(db.as("worker", `INSERT INTO oracle.${table} ${rest}`, [THIEF, done])).rejects.toThrow(
      `${table}.insert refused: the tenant has no such job`,
    );
  });

  it("attempts and results come from functions alone, which copy the job's tenant", async () => {
    const grants = await db.sql(
      `SELECT g.grantee, g.table_name, g.privilege_type, g.column_name FROM information_schema.column_privileges g
       WHERE g.table_schema = 'oracle' AND g.table_name IN ('attempts', 'results', 'jobs')
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
      "token_id",
      "token_hash",
      "audit_id",
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
    const before = await db.sql("SELECT * FROM oracle.jobs WHERE job_id = $1", [running.jobId]);
    const other = (await db.sql("SELECT attempt_id FROM oracle.attempts WHERE job_id = $1", [done]))[0]
      ?.attempt_id;
    for (const attemptId of [randomUUID(), other, running.jobId]) {
      const forged = { ...running, attemptId };
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
    expect(await db.sql("SELECT * FROM oracle.jobs WHERE job_id = $1", [running.jobId])).toEqual(before);
    expect(await db.sql("SELECT FROM oracle.results WHERE job_id = $1", [running.jobId])).toEqual([]);
    await store.close();
  });

  it("cannot be guessed: it is random, not counted", () => {
    expect(running.attemptId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  });

  it.each(["worker", "server", "tenant"] as const)(
    "and no login of %s changes or removes what is on record",
    async (role) => {
      const client =
        role === "tenant" ? await thief.connect() : await (await login({ roles: [role] })).connect();
      for (const sql of [
        "UPDATE oracle.results SET result_payload = '1'",
        "DELETE FROM oracle.results",
        "INSERT INTO oracle.results (job_id, attempt_id, tenant_id, content_hash, result_payload) VALUES (gen_random_uuid(), gen_random_uuid(), 'thief', 'h', '1')",
        "DELETE FROM oracle.attempts",
        "UPDATE oracle.attempts SET attempt_id = gen_random_uuid()",
        "INSERT INTO oracle.attempts (job_id, attempt_id, attempt_no, tenant_id, worker_id) VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'thief', 'me')",
        "DELETE FROM oracle.audit",
        "UPDATE oracle.audit SET login = 'somebody else'",
        "INSERT INTO oracle.audit (tenant_id, job_id, action, login) VALUES ('thief', gen_random_uuid(), 'x', 'somebody else')",
      ]) {
        await expect(client.query(sql), sql).rejects.toMatchObject({ code: "42501" });
      }
    },
  );
});

describe("whoever listens", () => {
  it("hears hashes and words of ours, never a tenant, a queue, a job or a key", async () => {
    const client = await thief.connect();
    const heard: string[] = [];
    client.on("notification", ({ payload = "" }) => heard.push(payload));
    await client.query("LISTEN oracle_wake");
    const job = await db.oracle.enqueue(
      "payroll",
      { a: 1 },
      { tenant: VICTIM, queue: "payroll-queue", key: "payroll-key" },
    );
    await db.oracle.cancel(running.jobId);
    await until("both notices", async () => heard.length >= 2);
    for (const payload of heard) expect(payload).toMatch(/^([0-9a-f]{8}|cancel|sweep)$/);
    expect(heard.join()).not.toContain(job.id.slice(0, 8));
  });
});
