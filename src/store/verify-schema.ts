import type pg from "pg";
import type { Database } from "./database.js";
import { migrationStatus, withAdminClient } from "./migrate.js";
import { migrations, renderSql } from "./migrations.js";

// Everything that defines the schema's behaviour, one row per object: what it is, and how Postgres prints it. The right to
// vacuum and a view's security_invoker are left out: older servers do not know them, and an upgrade of the server does not
// bring them.
const catalogue = `
  SELECT 'column ' || c.relname || '.' || a.attname AS object,
    format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
      || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      || coalesce(' grants ' || (SELECT string_agg(x::text, ',' ORDER BY x::text) FROM unnest(a.attacl) x), '') AS shape
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'c', 'v')
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE c.relnamespace = $1::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT 'table ' || c.relname, concat_ws(' ', pg_get_userbyid(c.relowner), c.relrowsecurity, c.relforcerowsecurity,
    nullif(array_remove(c.reloptions, 'security_invoker=true'), '{}')::text, (SELECT string_agg(x.grants, ',' ORDER BY x.grants) FROM (
      SELECT regexp_replace(a::text, 'm\\*?([a-zA-Z*]*/)', '\\1') AS grants FROM unnest(c.relacl) a) x))
  FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'v')
  UNION ALL
  SELECT 'view ' || c.relname, pg_get_viewdef(c.oid)
  FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'v'
  UNION ALL
  SELECT 'constraint ' || c.conrelid::regclass || '.' || c.conname, pg_get_constraintdef(c.oid)
  FROM pg_constraint c WHERE c.connamespace = $1::regnamespace AND c.contype <> 'n'
  UNION ALL
  SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) || CASE WHEN i.indisvalid THEN '' ELSE ' invalid' END
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = $1::regnamespace
  UNION ALL
  SELECT 'trigger ' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  WHERE c.relnamespace = $1::regnamespace AND NOT t.tgisinternal
  UNION ALL
  SELECT 'function ' || p.proname, pg_get_functiondef(p.oid) || coalesce(
    (SELECT string_agg(x::text, ',' ORDER BY x::text) FROM unnest(p.proacl) x), '')
  FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
  UNION ALL
  SELECT 'policy ' || c.relname || '.' || p.polname, concat_ws(' ', p.polcmd, p.polpermissive,
    (SELECT string_agg(pg_get_userbyid(r), ',' ORDER BY pg_get_userbyid(r)) FROM unnest(p.polroles) r),
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
  FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = $1::regnamespace
  UNION ALL
  SELECT 'enum ' || t.typname, (SELECT string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder)
    FROM pg_enum e WHERE e.enumtypid = t.oid)
  FROM pg_type t WHERE t.typnamespace = $1::regnamespace AND t.typtype = 'e'`;

/**
 * Compares the live schema with what the migrations make. The comparison copy is built under another name in a
 * transaction that is rolled back, so nothing is left behind and no second server is needed.
 */
export async function verifySchema(db: Database): Promise<{ differences: string[] }> {
  const status = await migrationStatus(db);
  const differences = status.flatMap(({ number, name, appliedAt, changed }) =>
    appliedAt === null
      ? [`migration ${number} ${name} is not applied`]
      : changed
        ? [`migration ${number} ${name} was changed after it was applied`]
        : [],
  );
  if (status.some(({ appliedAt }) => appliedAt === null)) return { differences };
  return withAdminClient(db, async (client) => {
    const live = await readCatalogue(client, db.schema, db.schema);
    const expected = await buildExpected(client, db.schema);
    return { differences: [...differences, ...compare(live, expected)] };
  });
}

async function buildExpected(client: pg.Client, schema: string): Promise<Map<string, string>> {
  const scratch = `${schema}_verify_${process.pid}`;
  await client.query("BEGIN");
  try {
    await client.query(`CREATE SCHEMA ${scratch} AUTHORIZATION ${schema}_owner`);
    await client.query(`SET LOCAL ROLE ${schema}_owner`);
    for (const migration of migrations()) await client.query(renderSql(migration.text, scratch, schema));
    return await readCatalogue(client, scratch, schema);
  } finally {
    await client.query("ROLLBACK");
  }
}

async function readCatalogue(client: pg.Client, schema: string, as: string): Promise<Map<string, string>> {
  // Printed names are qualified by what is not on the search path.
  await client.query("SET search_path = pg_catalog");
  const { rows } = await client.query<{ object: string; shape: string }>(catalogue, [schema]);
  const named = (text: string) => text.replaceAll(schema, as);
  return new Map(rows.map(({ object, shape }) => [named(object), named(shape ?? "")]));
}

function compare(live: Map<string, string>, expected: Map<string, string>): string[] {
  // The migrations' own table is made before the first of them.
  const ours = (object: string) => !/(?:^| |\.)migrations(?:$|\.|_)/.test(object);
  const missing = [...expected.keys()].filter((object) => !live.has(object)).map((o) => `${o} is missing`);
  const extra = [...live.keys()]
    .filter((object) => ours(object) && !expected.has(object))
    .map((o) => `${o} is not part of the schema`);
  const changed = [...expected]
    .filter(([object, shape]) => live.has(object) && live.get(object) !== shape)
    .map(([object]) => `${object} differs`);
  return [...missing, ...extra, ...changed];
}
