import { OracleError } from "../core/errors.js";
import { type Database, statement } from "./database.js";

/** A way past the tenants' walls, and the SQL that closes it. */
export interface Leak {
  what: string;
  fix: string;
}

// What holds tenants' rows is known by its columns, so that a table somebody added by hand counts too. A worker that
// serves one tenant names it, but its row is no tenant's. The view attempts reads through a function, with its caller's
// rights on every version.
const readLeaks = statement<Leak>(
  "row-security",
  `WITH ours AS MATERIALIZED (
     SELECT c.oid, c.relkind, c.relrowsecurity AND c.relforcerowsecurity AS forced, c.reloptions,
       '{schema}.' || quote_ident(c.relname) AS name
     FROM pg_catalog.pg_class c
     WHERE c.relnamespace = '{schema}'::regnamespace AND c.relname <> 'workers' AND EXISTS (
       SELECT FROM pg_catalog.pg_attribute a
       WHERE a.attrelid = c.oid AND a.attname IN ('tenant_id', 'job_id', 'job_ids') AND NOT a.attisdropped)
   )
   SELECT 'the table ' || name || ' does not force row-level security' AS what,
     'ALTER TABLE ' || name || ' ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY' AS fix
   FROM ours WHERE relkind IN ('r', 'p') AND NOT forced
   UNION ALL
   SELECT 'the view ' || name || ' reads with its owner''s rights',
     CASE WHEN current_setting('server_version_num')::integer >= 150000
       THEN 'ALTER VIEW ' || name || ' SET (security_invoker = true)' ELSE 'DROP VIEW ' || name END
   FROM ours WHERE relkind = 'v' AND NOT EXISTS (
     SELECT FROM pg_catalog.pg_proc p
     WHERE name = '{schema}.attempts' AND pg_get_viewdef(ours.oid) LIKE '%FROM {schema}.all_attempts()%'
       AND p.oid = to_regproc('{schema}.all_attempts') AND NOT p.prosecdef
   ) AND NOT EXISTS (
     SELECT FROM pg_catalog.pg_options_to_table(reloptions) o
     WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
   UNION ALL
   SELECT 'the materialized view ' || name || ' holds rows of every tenant', 'DROP MATERIALIZED VIEW ' || name
   FROM ours WHERE relkind = 'm'
   UNION ALL
   SELECT 'the policy ' || p.polname || ' on ' || o.name || ' does not ask for the tenant',
     'DROP POLICY ' || quote_ident(p.polname) || ' ON ' || o.name
   FROM ours o JOIN pg_catalog.pg_policy p ON p.polrelid = o.oid
   WHERE p.polpermissive
     AND p.polroles && ARRAY[0, '{schema}_server'::regrole::oid, '{schema}_tenant'::regrole::oid]::oid[]
     AND coalesce(pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
       NOT LIKE '%current_tenant()%'
   ORDER BY 1`,
);

/** Tables, views and policies through which one tenant could see another's rows. */
export function findLeaks(db: Database): Promise<Leak[]> {
  return db.query(readLeaks, []);
}

/** Refuses an installation whose tenants are not kept apart. */
export async function checkRowSecurity(db: Database): Promise<void> {
  const leaks = await findLeaks(db);
  if (leaks.length === 0) return;
  const list = leaks.map(({ what, fix }) => `${what} (mend: ${fix})`).join("; ");
  throw new OracleError("ROW_SECURITY", `Tenants are not kept apart: ${list}.`, { field: db.schema });
}
