import { randomBytes } from "node:crypto";
import { connect } from "oracle-worker";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { migrationStatus, printMigrations } from "../dist/store/migrate.js";
import { verifySchema } from "../dist/store/verify-schema.js";
import { echo } from "./support/jobs.js";
import { administer, withDatabase } from "./support/server.js";

const name = `migrate_${randomBytes(4).toString("hex")}`;
const schema = `s_${randomBytes(4).toString("hex")}`;
const printed = `p_${randomBytes(4).toString("hex")}`;
let url: string;
beforeAll(async () => {
  await administer(inject("adminUrl"), `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`);
  url = withDatabase(inject("adminUrl"), name);
});
afterAll(async () => {
  await administer(inject("adminUrl"), `DROP DATABASE ${name} WITH (FORCE)`);
  for (const role of ["owner", "worker", "server", "tenant"]) {
    await administer(
      inject("adminUrl"),
      `DROP ROLE IF EXISTS ${schema}_${role}, app_${schema}, low_${schema}`,
    );
  }
});

const open = (options: { databaseUrl?: string; schema?: string } = {}) =>
  connect({ databaseUrl: url, ...options });

describe("migrate", () => {
  it("says what is missing before, applies it once, and has nothing to do afterwards", async () => {
    const oracle = await open();
    await expect(oracle.enqueue("x", {})).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    const results = await Promise.all([oracle.migrate(), oracle.migrate(), oracle.migrate()]);
    expect(results.flat().slice(0, 2)).toEqual(["001_init", "002_indexes"]);
    expect(results.filter((applied) => applied.length > 0)).toHaveLength(1);
    expect(await oracle.migrate()).toEqual([]);
    expect((await migrationStatus(oracle.db)).every(({ appliedAt, changed }) => appliedAt && !changed)).toBe(
      true,
    );
    await oracle.close();
  });

  it("keeps several installations apart in one database", async () => {
    const first = await open();
    const second = await open({ schema });
    await second.migrate();
    const job = await second.enqueue(echo, { n: 1 });
    expect(await first.get(job.id)).toBeUndefined();
    expect((await second.get(job.id))?.state).toBe("PENDING");
    await Promise.all([first.close(), second.close()]);
  });

  it("refuses a database that is newer than the program", async () => {
    const oracle = await open({ schema });
    await administer(
      url,
      `INSERT INTO ${schema}.migrations (number, name, checksum) VALUES (999, 'future', 'x')`,
    );
    await expect(oracle.migrate()).rejects.toMatchObject({
      code: "SCHEMA_NEWER",
      message: expect.stringMatching(/999/),
    });
    await expect(oracle.check()).rejects.toMatchObject({ code: "SCHEMA_NEWER" });
    await administer(url, `DELETE FROM ${schema}.migrations WHERE number = 999`);
    await oracle.close();
  });

  it("finds drift, and leaves nothing behind while it looks", async () => {
    const oracle = await open();
    expect(await verifySchema(oracle.db)).toEqual({ differences: [] });
    await administer(
      url,
      `ALTER TABLE oracle.jobs ADD COLUMN extra int, DROP CONSTRAINT held_only_while_waiting;
       DROP INDEX oracle.idx_jobs_spec_hash; ALTER TABLE oracle.jobs NO FORCE ROW LEVEL SECURITY;
       GRANT DELETE ON oracle.results TO oracle_worker;
       CREATE OR REPLACE FUNCTION oracle.wake(queue text) RETURNS void LANGUAGE sql AS 'SELECT'`,
    );
    const { differences } = await verifySchema(oracle.db);
    for (const expected of [
      "column jobs.extra is not part of the schema",
      /constraint .*held_only_while_waiting is missing/,
      "index idx_jobs_spec_hash is missing",
      "table jobs differs",
      "table results differs",
      "function wake differs",
    ]) {
      expect(differences).toContainEqual(
        typeof expected === "string" ? expected : expect.stringMatching(expected),
      );
    }
    expect(differences).toHaveLength(6);
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%verify%'");
    await client.end();
    expect(rows).toEqual([]);
    await oracle.close();
  });

  it("does not miss the right to vacuum, which an upgrade of the server does not bring", async () => {
    const oracle = await open({ schema });
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query(
      "SELECT current_setting('server_version_num')::int >= 170000 AS known",
    );
    if (rows[0].known)
      await client.query(`REVOKE MAINTAIN ON ${schema}.jobs FROM ${schema}_worker, ${schema}_owner`);
    await client.end();
    expect(await verifySchema(oracle.db)).toEqual({ differences: [] });
    await oracle.close();
  });

  it("printed and run by hand, it leaves what migrate would leave", async () => {
    const oracle = await open({ schema: printed });
    await administer(url, printMigrations(printed));
    expect(await oracle.migrate()).toEqual([]);
    expect(await verifySchema(oracle.db)).toEqual({ differences: [] });
    await oracle.close();
  });

  it("works for a login that may create roles but is no superuser, and the worker runs restricted", async () => {
    await administer(inject("adminUrl"), `CREATE ROLE app_${schema} LOGIN CREATEROLE PASSWORD 'x'`);
    await administer(
      url,
      `DROP SCHEMA ${schema} CASCADE; DROP ROLE ${schema}_owner, ${schema}_worker, ${schema}_server, ${schema}_tenant`,
    );
    await administer(url, `GRANT CREATE ON DATABASE ${name} TO app_${schema}`);
    const login = new URL(url);
    login.username = `app_${schema}`;
    login.password = "x";
    const oracle = await open({ databaseUrl: login.href, schema });
    await oracle.migrate();
    await oracle.check();
    expect((await oracle.enqueue(echo, { n: 1 })).created).toBe(true);
    expect(await verifySchema(oracle.db)).toEqual({ differences: [] });
    await oracle.close();
  });

  it("refuses a login that may not take the restricted role, and prints what mends it", async () => {
    await administer(inject("adminUrl"), `CREATE ROLE low_${schema} LOGIN PASSWORD 'x'`);
    const login = new URL(url);
    login.username = `low_${schema}`;
    login.password = "x";
    const oracle = await open({ databaseUrl: login.href });
    await expect(oracle.check()).rejects.toMatchObject({
      code: "ROLE_REFUSED",
      message: expect.stringMatching(/GRANT oracle_worker TO/),
    });
    await oracle.close();
  });

  it("with STRICT_ROLES refuses a login that could step back out", async () => {
    process.env.STRICT_ROLES = "1";
    const oracle = await open();
    await expect(oracle.check()).rejects.toMatchObject({
      code: "ROLE_REFUSED",
      message: expect.stringMatching(/superuser/),
    });
    await oracle.close();
    delete process.env.STRICT_ROLES;
  });
});

describe("connecting", () => {
  it("refuses a database that is not UTF8", async () => {
    await administer(
      inject("adminUrl"),
      `CREATE DATABASE ${name}_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`,
    );
    const oracle = await open({ databaseUrl: withDatabase(inject("adminUrl"), `${name}_ascii`) });
    await expect(oracle.migrate()).rejects.toMatchObject({ code: "DATABASE_ENCODING" });
    await oracle.close();
    await administer(inject("adminUrl"), `DROP DATABASE ${name}_ascii`);
  });

  it("names what is wrong with the address", async () => {
    const wrong = new URL(url);
    wrong.port = "1";
    const dead = await open({ databaseUrl: wrong.href });
    await expect(dead.enqueue("x", {})).rejects.toMatchObject({ code: "DATABASE_UNREACHABLE" });
    await dead.close();
    const missing = await open({ databaseUrl: withDatabase(url, "no_such_database") });
    await expect(missing.enqueue("x", {})).rejects.toMatchObject({
      message: expect.stringMatching(/no_such_database/),
    });
    await missing.close();
    await expect(connect({ databaseUrl: url, schema: "Bad-Name" })).rejects.toMatchObject({
      code: "INVALID_SETTING",
      field: "ORACLE_SCHEMA",
    });
  });
});
