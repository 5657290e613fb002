import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestLogin, useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { THIEF, useVictim, VICTIM } from "./support/victim.js";

// A tenant's login, with no right of its own, tries for another tenant's rows; docs/tenants.md says what must hold.

const db = useTestDatabase();
const login = useLogins(db);
const victim = useVictim(db);
let thief: TestLogin;
beforeAll(async () => {
  thief = await login({ tenantId: THIEF });
});

describe("another tenant's job, by SQL", () => {
  it("is in no table that a tenant's login can read", async () => {
    const client = await thief.connect();
    await client.query("SELECT oracle.enqueue('own', '{}')");
    const tables = await db.sql(
      `SELECT DISTINCT c.oid::regclass::text AS name, a.attname AS link FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
       WHERE c.relnamespace = 'oracle'::regnamespace AND c.relkind IN ('r', 'v') AND a.attname IN ('tenant_id', 'job_ids')`,
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
      "oracle.past_attempts": [],
      "oracle.attempt_reports": [],
      "oracle.results": [],
      "oracle.artifacts": [],
      "oracle.attempt_logs": [],
      "oracle.steps": [],
      "oracle.effects": [],
      "oracle.evolution_jobs": [],
      "oracle.commit_cards": [],
      "oracle.metrics": [],
      "oracle.job_artifacts": [],
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
      ['{"amount": 7}', `key => '${victim.done}'`],
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
    expect(names(({ tenant }) => tenant)).toEqual(["all_attempts", "current_tenant", "enqueue"]);
    expect(names(({ server }) => server)).toEqual([
      "all_attempts",
      "count_delayed",
      "count_running",
      "current_tenant",
      "decide_plan",
      "enqueue",
      "enqueue_alike",
      "enqueue_jobs",
      "has_tokens",
      "key_as_id",
      "pause_queue",
      "queue_depths",
      "ready_sample",
      "resolve_effect",
      "running_jobs",
      "sees_every_tenant",
      "take_over_steps",
      "verify_token",
      "waiting_jobs",
    ]);
  });
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
    await db.oracle.cancel(victim.running.jobId);
    await until("both notices", async () => heard.length >= 2);
    for (const payload of heard) expect(payload).toMatch(/^([0-9a-f]{8}|cancel|sweep)$/);
    expect(heard.join()).not.toContain(job.id.slice(0, 8));
  });
});
