import { OracleError } from "../core/errors.js";
import { type Database, statement } from "./database.js";
import { readLoginPower } from "./login-power.js";
import { latestMigration } from "./migrations.js";
import { checkRowSecurity } from "./row-security.js";

const readState = statement<{ newest: number | null; encoding: string; acting: string; fit: boolean }>(
  "check-schema",
  `SELECT (SELECT max(number) FROM {schema}.migrations) AS newest,
     current_setting('server_encoding') AS encoding, current_user::text AS acting,
     pg_has_role(current_user, $1, 'USAGE') AS fit`,
);

/** Refuses a database this program cannot work with, before anything is written to it. */
export async function checkSchema(db: Database, strictRoles: boolean): Promise<void> {
  const role = `${db.schema}_${db.options.role ?? "worker"}`;
  const [state] = await db.query(readState, [role]);
  if (!state) return;
  checkVersion(state.newest ?? 0);
  if (state.encoding !== "UTF8") {
    throw new OracleError(
      "DATABASE_ENCODING",
      `The database's encoding is ${state.encoding}; it must be UTF8.`,
    );
  }
  await checkLogin(db, role, state, strictRoles);
  await checkRowSecurity(db);
}

function checkVersion(newest: number): void {
  const known = latestMigration();
  if (newest > known) {
    throw new OracleError(
      "SCHEMA_NEWER",
      `The database is at migration ${newest}, this program knows up to ${known}: use a newer oracle-worker.`,
    );
  }
  if (newest < known) {
    throw new OracleError(
      "SCHEMA_OUTDATED",
      `The database is at migration ${newest}, this program needs ${known}: run \`oracle-worker migrate\`.`,
    );
  }
}

/** Behind a pooler no role can be taken: there the login itself must be the restricted one. */
async function checkLogin(
  db: Database,
  role: string,
  { acting, fit }: { acting: string; fit: boolean },
  strictRoles: boolean,
): Promise<void> {
  const taken = acting === role;
  if (taken && !strictRoles) return;
  const [login] = await db.query(readLoginPower, [null]);
  const said = taken ? "STRICT_ROLES is on" : "no restricted role can be taken";
  if (login?.why) {
    throw new OracleError(
      "ROLE_REFUSED",
      `The login ${login.login} ${login.why}, and ${said}. Use a login that is only granted ${role}: \`oracle-worker migrate roles --login NAME\` makes one.`,
      { field: "DATABASE_URL" },
    );
  }
  if (!fit) {
    throw new OracleError(
      "ROLE_REFUSED",
      `The login ${acting} does not have the rights of ${role}, and ${said}. As an administrator: \`oracle-worker migrate roles --login ${acting}\`, and ALTER ROLE ${acting} INHERIT.`,
      { field: "DATABASE_URL" },
    );
  }
}
