import { statement } from "./database.js";

/**
 * Why a login could step out of a restricted role, null when it could not; $1 names it, NULL means the session's own.
 * Membership counts however it was granted: who may not SET ROLE today but has ADMIN can grant it to himself.
 */
export const readLoginPower = statement<{ login: string; why: string | null }>(
  "login-power",
  `SELECT r.rolname::text AS login, CASE
     WHEN r.rolsuper THEN 'is a superuser'
     WHEN r.rolbypassrls THEN 'has BYPASSRLS'
     WHEN strong.name IS NOT NULL THEN 'is a member of ' || strong.name || ', which ' || strong.why
     WHEN pg_has_role(r.oid, '{schema}_owner', 'MEMBER') THEN 'is a member of {schema}_owner'
     WHEN r.rolcreaterole AND current_setting('server_version_num')::integer < 160000
       THEN 'may create roles, and before PostgreSQL 16 grant any of them to itself'
   END AS why
   FROM pg_catalog.pg_roles r
   LEFT JOIN LATERAL (
     SELECT s.rolname::text AS name, CASE WHEN s.rolsuper THEN 'is a superuser' ELSE 'has BYPASSRLS' END AS why
     FROM pg_catalog.pg_roles s
     WHERE (s.rolsuper OR s.rolbypassrls) AND s.oid <> r.oid AND pg_has_role(r.oid, s.oid, 'MEMBER')
     ORDER BY s.rolname LIMIT 1
   ) strong ON true
   WHERE r.rolname = coalesce($1, session_user)`,
);
