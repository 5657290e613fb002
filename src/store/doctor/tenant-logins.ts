import { statement } from "../database.js";
import { type Check, fail, ok, type Symptom, warn } from "./check.js";

interface LoginRow {
  login: string;
  tenant_id: string | null;
  member: boolean;
  /** A role of programs that it has too. */
  program: string | null;
}

// Those who migrate are members of every role, and need no tenant.
const readLogins = statement<LoginRow>(
  "doctor-tenant-logins",
  `SELECT coalesce(t.login, r.rolname)::text AS login, t.tenant_id,
     coalesce(pg_has_role(r.oid, '{schema}_tenant', 'MEMBER'), false) AS member,
     CASE WHEN pg_has_role(r.oid, '{schema}_worker', 'MEMBER') THEN '{schema}_worker'
       WHEN pg_has_role(r.oid, '{schema}_server', 'MEMBER') THEN '{schema}_server' END AS program
   FROM {schema}.tenant_logins t FULL JOIN pg_catalog.pg_roles r ON r.rolname = t.login
   WHERE t.login IS NOT NULL OR (
     pg_has_role(r.oid, '{schema}_tenant', 'MEMBER') AND r.rolname <> '{schema}_tenant'
     AND NOT pg_has_role(r.oid, '{schema}_owner', 'MEMBER'))
   ORDER BY 1`,
);

/** Whoever comes by SQL for a tenant has one, and only that. */
export const tenantLogins: Check = {
  name: "tenant logins",
  async examine({ db }) {
    const logins = await db.query(readLogins, []);
    const symptoms = logins.map(judge).filter((symptom) => symptom !== undefined);
    return symptoms.length > 0 ? symptoms : ok(`${logins.length} with one tenant each`);
  },
};

function judge({ login, tenant_id, member, program }: LoginRow): Symptom | undefined {
  const mend = `\`oracle-worker migrate roles --login ${login} --tenant T\``;
  if (program !== null) {
    const message = `the login ${login} has the roles of tenants and of programs: it sees every tenant`;
    return fail(message, `REVOKE ${program} FROM ${login}`);
  }
  if (tenant_id === null) {
    return warn(`the login ${login} has the role of tenants but no tenant: it sees nothing`, mend);
  }
  if (!member) return warn(`the login ${login} of tenant ${tenant_id} is gone or has lost its role`, mend);
  return undefined;
}
