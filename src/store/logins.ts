import { randomBytes } from "node:crypto";
import type pg from "pg";
import { OracleError } from "../core/errors.js";
import { scramVerifier } from "../core/scram.js";
import type { Database } from "./database.js";
import { grantTo, needs } from "./grant.js";
import { readLoginPower } from "./login-power.js";
import { withAdminClient } from "./migrate.js";

/** What a login is for: the roles of programs, or one tenant by SQL. */
export type LoginUse = { roles: ("worker" | "server")[] } | { tenantId: string };

export interface GrantedLogin {
  login: string;
  /** Only of a login that was made here, and only now: it is kept nowhere. */
  password: string | null;
}

/** Makes the login unless it is there, and gives it what its use needs; doing it twice changes nothing. */
export async function grantLogin(db: Database, login: string, use: LoginUse): Promise<GrantedLogin> {
  return withAdminClient(db, async (client) => {
    await client.query("BEGIN");
    const password = (await exists(client, login)) ? null : await create(client, login);
    const why = "tenantId" in use ? await seesAll(client, db, login) : await isTenants(client, db, login);
    if (why) {
      const message = `The login ${JSON.stringify(login)} ${why}: use another login for this.`;
      throw new OracleError("INVALID_ARGUMENT", message, { field: "login" });
    }
    await grantTo(client, db.schema, login, "tenantId" in use ? ["tenant"] : use.roles);
    if ("tenantId" in use) await mapToTenant(client, db.schema, login, use.tenantId);
    await client.query("COMMIT");
    return { login, password };
  });
}

async function exists(client: pg.Client, login: string): Promise<boolean> {
  const { rows } = await client.query("SELECT FROM pg_catalog.pg_roles WHERE rolname = $1", [login]);
  return rows.length > 0;
}

async function create(client: pg.Client, login: string): Promise<string> {
  const password = randomBytes(24).toString("base64url");
  const made = `CREATE ROLE ${client.escapeIdentifier(login)} LOGIN PASSWORD`;
  await client.query(`${made} '${scramVerifier(password)}'`).catch(needs(`${made} '…'`));
  return password;
}

/** A tenant's login that can also act as a program would see every tenant, and nobody would notice. */
async function seesAll(client: pg.Client, db: Database, login: string): Promise<string | undefined> {
  const { rows } = await client.query<{ why: string | null }>(db.render(readLoginPower.text), [login]);
  if (rows[0]?.why) return `${rows[0].why}, so it would see every tenant`;
  const { rows: roles } = await client.query<{ role: string }>(
    `SELECT r.rolname::text AS role FROM pg_catalog.pg_roles r
     WHERE r.rolname = ANY ($2) AND pg_has_role($1, r.oid, 'MEMBER') ORDER BY 1`,
    [login, [`${db.schema}_server`, `${db.schema}_worker`]],
  );
  return roles[0] && `is a member of ${roles[0].role}, so it would see every tenant`;
}

async function isTenants(
  client: pg.Client,
  { schema }: Database,
  login: string,
): Promise<string | undefined> {
  await client.query(`SET LOCAL ROLE ${schema}_owner`);
  const { rows } = await client.query<{ tenant_id: string }>(
    `SELECT tenant_id FROM ${schema}.tenant_logins WHERE login = $1`,
    [login],
  );
  await client.query("SET LOCAL ROLE none");
  return rows[0] && `has the tenant ${JSON.stringify(rows[0].tenant_id)}`;
}

async function mapToTenant(
  client: pg.Client,
  schema: string,
  login: string,
  tenantId: string,
): Promise<void> {
  await client.query(`SET LOCAL ROLE ${schema}_owner`);
  await client.query(
    `INSERT INTO ${schema}.tenant_logins (login, tenant_id) VALUES ($1, $2)
     ON CONFLICT (login) DO UPDATE SET tenant_id = excluded.tenant_id`,
    [login, tenantId],
  );
}
