import { OracleError } from "../core/errors.js";
import { type Database, statement } from "./database.js";
import { latestMigration } from "./migrations.js";

const readVersion = statement<{
  newest: number | null;
  encoding: string;
  login: string;
  superuser: boolean;
  bypass: boolean;
  owner: boolean;
  acting: string;
}>(
  "check-schema",
  `SELECT (SELECT max(number) FROM {schema}.migrations) AS newest,
     current_setting('server_encoding') AS encoding, session_user::text AS login, current_user::text AS acting,
     r.rolsuper AS superuser, r.rolbypassrls AS bypass,
     pg_has_role(session_user, '{schema}_owner', 'MEMBER') AS owner
   FROM pg_catalog.pg_roles r WHERE r.rolname = session_user`,
);

/** Refuses a database this program cannot work with, before anything is written to it. */
export async function checkSchema(db: Database, strictRoles: boolean): Promise<void> {
  const [row] = await db.query(readVersion, []);
  const newest = row?.newest ?? 0;
  if (newest > latestMigration()) {
    throw new OracleError(
      "SCHEMA_NEWER",
      `The database is at migration ${newest}, this program knows up to ${latestMigration()}: use a newer oracle-worker.`,
    );
  }
  if (newest < latestMigration()) {
    throw new OracleError(
      "SCHEMA_OUTDATED",
      `The database is at migration ${newest}, this program needs ${latestMigration()}: run \`oracle-worker migrate\`.`,
    );
  }
  if (!row) return;
  if (row.encoding !== "UTF8") {
    throw new OracleError(
      "DATABASE_ENCODING",
      `The database's encoding is ${row.encoding}; it must be UTF8.`,
    );
  }
  // Behind a pooler the login itself must be the restricted one: there is no taking another role.
  const restricted = row.acting === `${db.schema}_worker` || row.acting === `${db.schema}_server`;
  if (restricted && !strictRoles) return;
  const why = row.superuser
    ? "is a superuser"
    : row.bypass
      ? "has BYPASSRLS"
      : row.owner
        ? `is a member of ${db.schema}_owner`
        : undefined;
  if (why) {
    throw new OracleError(
      "ROLE_REFUSED",
      `The login ${row.login} ${why}, and ${restricted ? "STRICT_ROLES is on" : "no restricted role can be taken"}. Use a login that is only granted ${db.schema}_worker.`,
      { field: "DATABASE_URL" },
    );
  }
}
