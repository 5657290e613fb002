import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { OracleError } from "../core/errors.js";
import type { Database } from "./database.js";
import { toDatabaseError } from "./database-errors.js";
import { grantTo } from "./grant.js";
import { latestMigration, type Migration, migrations, renderSql, rolesSql } from "./migrations.js";

/** How long a migration waits for a table's lock before it steps back and lets the queue behind it through. */
const LOCK_TIMEOUT_MS = 5_000;
const LOCK_TRIES = 12;

export interface MigrationStatus {
  number: number;
  name: string;
  appliedAt: Date | null;
  /** The file differs from what was applied. */
  changed: boolean;
}

interface AppliedRow {
  number: number;
  checksum: string;
  applied_at: Date;
}

/** A connection of the login itself, not of a restricted role: migrations and checks of the schema. */
export async function withAdminClient<T>(db: Database, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: db.directUrl,
    application_name: "oracle-worker migrate",
    connectionTimeoutMillis: db.connectTimeoutMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SET client_min_messages = warning");
    return await work(client);
  } catch (error) {
    throw toDatabaseError(error, db.schema);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Applies what is missing and returns it. Safe to run from many places at once. `logins` get the roles. */
export async function migrate(db: Database, logins: string[] = []): Promise<Migration[]> {
  return withAdminClient(db, async (client) => {
    await checkServer(client);
    // One migration at a time per installation; the lock ends with the connection.
    await client.query("SELECT pg_advisory_lock(hashtext($1), hashtext('migrate'))", [db.schema]);
    await prepare(client, db.schema);
    const applied = await readApplied(client, db.schema);
    refuseNewer(applied);
    const missing = migrations().filter(
      (migration) => !applied.some((row) => row.number === migration.number),
    );
    for (const migration of missing) await apply(client, db.schema, migration);
    await client.query("RESET ROLE");
    for (const login of logins) await grantTo(client, db.schema, login, ["worker", "server"]);
    return missing;
  });
}

export async function migrationStatus(db: Database): Promise<MigrationStatus[]> {
  return withAdminClient(db, async (client) => {
    const applied = await readApplied(client, db.schema);
    refuseNewer(applied);
    return migrations().map((migration) => {
      const row = applied.find((candidate) => candidate.number === migration.number);
      return {
        number: migration.number,
        name: migration.name,
        appliedAt: row?.applied_at ?? null,
        changed: row !== undefined && row.checksum !== migration.checksum,
      };
    });
  });
}

/** The whole SQL for somebody who reviews it, or runs it by hand: it leaves what `migrate` would leave. */
export function printMigrations(schema: string): string {
  const parts = migrations().map(
    ({ number, name, checksum, text }) => `-- ${number} ${name}
BEGIN;
SET LOCAL ROLE {role}_owner;
${text}
INSERT INTO {schema}.migrations (number, name, checksum) VALUES (${number}, '${name}', '${checksum}');
COMMIT;
`,
  );
  return renderSql([rolesSql(), createTable, "RESET ROLE;\n", ...parts].join("\n"), schema);
}

const createTable = `
CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {role}_owner;
SET ROLE {role}_owner;
CREATE TABLE IF NOT EXISTS {schema}.migrations (
  number integer NOT NULL PRIMARY KEY,
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT USAGE ON SCHEMA {schema} TO {role}_worker, {role}_server, {role}_tenant;
GRANT SELECT ON {schema}.migrations TO {role}_worker, {role}_server, {role}_tenant;
`;

async function prepare(client: pg.Client, schema: string): Promise<void> {
  await client.query(renderSql(rolesSql(), schema)).catch((error: unknown) => {
    if ((error as { code?: string }).code !== "42501") throw error;
    throw new OracleError(
      "ROLE_REFUSED",
      `This login may not create or join the roles of the installation (${(error as Error).message}). Let an administrator run \`oracle-worker migrate print\` once, or give this login CREATEROLE.`,
      { cause: error },
    );
  });
  await client.query("BEGIN");
  await client.query(renderSql(createTable, schema));
  await client.query("COMMIT");
}

async function apply(client: pg.Client, schema: string, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.query("BEGIN");
      await client.query(`SET LOCAL ROLE ${schema}_owner`);
      await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await client.query(renderSql(migration.text, schema));
      await client.query(`INSERT INTO ${schema}.migrations (number, name, checksum) VALUES ($1, $2, $3)`, [
        migration.number,
        migration.name,
        migration.checksum,
      ]);
      await client.query("COMMIT");
      return;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {});
      if ((error as { code?: string }).code !== "55P03" || tries === LOCK_TRIES) throw error;
      await sleep(500 * tries);
    }
  }
}

async function readApplied(client: pg.Client, schema: string): Promise<AppliedRow[]> {
  const { rows: found } = await client.query("SELECT to_regclass($1) IS NOT NULL AS there", [
    `${schema}.migrations`,
  ]);
  if (!found[0]?.there) return [];
  const { rows } = await client.query<AppliedRow>(
    `SELECT number, checksum, applied_at FROM ${schema}.migrations ORDER BY number`,
  );
  return rows;
}

function refuseNewer(applied: { number: number }[]): void {
  const newest = applied.at(-1)?.number ?? 0;
  if (newest <= latestMigration()) return;
  throw new OracleError(
    "SCHEMA_NEWER",
    `The database is at migration ${newest}, this program knows up to ${latestMigration()}: use a newer oracle-worker.`,
  );
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string }>(
    `SELECT current_setting('server_version_num')::integer AS version,
       current_setting('server_encoding') AS encoding`,
  );
  const { version = 0, encoding = "" } = rows[0] ?? {};
  if (version < 130_000) {
    throw new OracleError("DATABASE_VERSION", `The server is version ${version}; 13 or newer is needed.`);
  }
  if (encoding !== "UTF8") {
    throw new OracleError(
      "DATABASE_ENCODING",
      `The database's encoding is ${encoding}; create one with ENCODING 'UTF8' TEMPLATE template0.`,
    );
  }
}
