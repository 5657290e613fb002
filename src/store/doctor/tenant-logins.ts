import { statement } from "../database.js";
import { type Check, fail, ok, type Symptom, warn } from "./check.js";

interface LoginRow {
  login: string;
  tenant_id: string;
  member: boolean;
  /** A role of programs that it has too. */
  program: string | null;
}

const readLogins = statement<LoginRow>(
  "doctor-tenant-logins",
  `SELECT t.login::text, t.tenant_id, coalesce(pg_has_role(r.oid, '{schema}_tenant', 'MEMBER'), false) AS member,
     CASE WHEN pg_has_role(r.oid, '{schema}_worker', 'MEMBER') THEN '{schema}_worker'
       WHEN pg_has_role(r.oid, '{schema}_server', 'MEMBER') THEN '{schema}_server' END AS program
   FROM {schema}.tenant_logins t LEFT JOIN pg_catalog.pg_roles r ON r.rolname = t.login
   ORDER BY 1`,
);

/** Whoever comes by SQL for a tenant has that tenant, and no more. */
export const tenantLogins: Check = {
  name: "tenant logins",
  async examine({ db }) {
    const logins = await db.query(readLogins, []);
    const symptoms = logins.map(judge).filter((symptom) => symptom !== undefined);
    return symptoms.length > 0 ? symptoms : ok(`${logins.length} with one tenant each`);
  },
};

function judge({ login, tenant_id, member, program }: LoginRow): Symptom | undefined {
  if (program !== null) {
    const message = `the login ${login} of tenant ${tenant_id} also has ${program}: it sees every tenant`;
    return fail(message, `REVOKE ${program} FROM ${login}`);
  }
  if (member) return undefined;
  return warn(
    `the login ${login} of tenant ${tenant_id} is gone or has lost its role`,
    `\`oracle-worker migrate roles --login ${login} --tenant ${tenant_id}\``,
  );
}
