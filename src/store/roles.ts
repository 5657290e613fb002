import { OracleError } from "../core/errors.js";
import type { Database } from "./database.js";
import { grantLogins, withAdminClient } from "./migrate.js";

export interface RoleMembers {
  role: string;
  about: string;
  /** Roles that were granted it; superusers may act as it without. */
  members: string[];
}

const purposes = {
  owner: "own every table; migrate",
  worker: "claim, run and settle jobs of every tenant; submit and steer them",
  server: "answer for one tenant at a time",
  tenant: "submit and read one tenant's jobs by SQL",
} as const;

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

/** Lets a login act as worker and server; granting twice changes nothing. */
export async function grantRoles(db: Database, login: string): Promise<void> {
  await readRoles(db);
  await withAdminClient(db, async (client) => {
    await grantLogins(client, db.schema, [login]).catch((error: unknown) => {
      throw explain(error, db.schema, login);
    });
  });
}

function explain(error: unknown, schema: string, login: string): unknown {
  const { code, message } = error as { code?: string; message?: string };
  const name = JSON.stringify(login);
  if (code === "42704") {
    const text = `There is no login ${name} on this server: create it first, with CREATE ROLE ${name} LOGIN.`;
    return new OracleError("INVALID_ARGUMENT", text, { field: "login", cause: error });
  }
  if (code === "42501") {
    const grant = `GRANT ${schema}_worker, ${schema}_server TO ${name}`;
    return new OracleError(
      "ROLE_REFUSED",
      `This login may not grant the roles (${message}). As an administrator: ${grant}.`,
      {
        cause: error,
      },
    );
  }
  return error;
}
