import { OracleError } from "../core/errors.js";
import { type Database, statement } from "./database.js";
import { withAdminClient } from "./migrate.js";

export interface RoleMembers {
  role: string;
  about: string;
  /** Roles that were granted it; superusers may act as it without. */
  members: string[];
}

export interface TenantLogin {
  login: string;
  tenantId: string;
}

const purposes = {
  owner: "own every table; migrate",
  worker: "claim, run and settle jobs of every tenant; submit and steer them",
  server: "answer for one tenant at a time",
  tenant: "submit and read one tenant's jobs by SQL",
} as const;

const tenantLogins = statement<{ login: string; tenant_id: string }>(
  "tenant-logins",
  "SELECT login::text, tenant_id FROM {schema}.tenant_logins ORDER BY login",
);

/** The installation's roles and who was granted them. SchemaMissing where there are none. */
export async function readRoles(db: Database): Promise<RoleMembers[]> {
  const names = Object.keys(purposes).map((suffix) => `${db.schema}_${suffix}`);
  const rows = await withAdminClient(db, async (client) => {
    const { rows } = await client.query<{ role: string; members: string[] }>(
      `SELECT r.rolname::text AS role,
         array(SELECT DISTINCT m.rolname::text FROM pg_catalog.pg_auth_members a
           JOIN pg_catalog.pg_roles m ON m.oid = a.member WHERE a.roleid = r.oid ORDER BY 1) AS members
       FROM pg_catalog.pg_roles r WHERE r.rolname = ANY ($1)`,
      [names],
    );
    return rows;
  });
  if (rows.length === 0) {
    const message = `The roles of ${db.schema} have not been made on this server: run \`oracle-worker migrate\`.`;
    throw new OracleError("SCHEMA_MISSING", message);
  }
  return Object.entries(purposes).flatMap(([suffix, about]) => {
    const found = rows.find(({ role }) => role === `${db.schema}_${suffix}`);
    return found ? [{ role: found.role, about, members: found.members }] : [];
  });
}

/** Which login has which tenant. */
export async function readTenantLogins(db: Database): Promise<TenantLogin[]> {
  const rows = await db.query(tenantLogins, []);
  return rows.map(({ login, tenant_id }) => ({ login, tenantId: tenant_id }));
}
