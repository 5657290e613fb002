import { Argument, type Command } from "commander";
import { OracleError } from "../core/errors.js";
import { type GrantedLogin, grantLogin } from "../store/logins.js";
import { migrationStatus, printMigrations } from "../store/migrate.js";
import { latestMigration } from "../store/migrations.js";
import { type RoleMembers, readRoles, readTenantLogins, type TenantLogin } from "../store/roles.js";
import { verifySchema } from "../store/verify-schema.js";
import { nameLengths } from "../submit.js";
import { action, type Call, examples } from "./command.js";
import { parseOneOf, parseText } from "./parse.js";
import { table } from "./table.js";
import { relative } from "./time.js";

interface MigrateFlags {
  login?: string;
  role?: "worker" | "server";
  tenant?: string;
}

const steps = { up, status, verify, print, roles };
type Step = keyof typeof steps;

const LONGEST_ROLE_NAME = 63;
const programs = ["worker", "server"] as const;

export function register(program: Command): void {
  program
    .command("migrate")
    .description("make the schema, bring it up to date, check it")
    .addArgument(
      new Argument(
        "[step]",
        "up: apply what is missing; status: what is applied; verify: compare the schema with what the " +
          "migrations make; print: their SQL, for review; roles: who may act as what",
      )
        .choices(Object.keys(steps))
        .default("up"),
    )
    .option(
      "--login <name>",
      "with roles: make this login if it is missing, and let it act as worker and server",
      parseText("--login", LONGEST_ROLE_NAME),
    )
    .option(
      "--role <role>",
      "with --login: only as worker, or only as server",
      parseOneOf("--role", programs),
    )
    .option(
      "--tenant <tenant>",
      "with --login: only as this tenant, by SQL",
      parseText("--tenant", nameLengths.tenant),
    )
    .addHelpText(
      "after",
      examples(
        "oracle-worker migrate",
        "oracle-worker migrate status",
        "oracle-worker migrate print > review.sql",
        "oracle-worker migrate roles --login app",
        "oracle-worker migrate roles --login team_a --tenant team-a",
      ),
    )
    .action(action<MigrateFlags>(migrateCommand));
}

async function migrateCommand(call: Call<MigrateFlags>, step: string): Promise<void> {
  const { login, role, tenant } = call.flags;
  if (login !== undefined && step !== "roles") {
    throw misplaced("--login", "goes with `migrate roles` only");
  }
  if (login === undefined && (role ?? tenant) !== undefined) {
    throw misplaced(role === undefined ? "--tenant" : "--role", "goes with --login only");
  }
  if (role !== undefined && tenant !== undefined) throw misplaced("--tenant", "excludes --role");
  await steps[step as Step](call);
}

function misplaced(flag: string, why: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", `${flag} ${why}.`, { field: flag });
}

async function up({ out, withOracle }: Call<MigrateFlags>): Promise<void> {
  const applied = await withOracle((oracle) => oracle.migrate(), { migrate: false });
  const at = latestMigration();
  await out.show({ applied, at }, () => {
    return [...applied.map((name) => `Applied ${name}`), `The schema is at migration ${at}.`].join("\n");
  });
}

async function status({ out, withOracle }: Call<MigrateFlags>): Promise<void> {
  const items = await withOracle((oracle) => oracle.withAdmin(migrationStatus), { migrate: false });
  const rows = items.map(({ number, name, appliedAt, changed }) => ({
    number,
    name,
    applied_at: appliedAt,
    changed,
  }));
  await out.show({ items: rows, next: null }, () =>
    table(items, [
      { title: "NO", value: ({ number }) => number, align: "right" },
      { title: "NAME", value: ({ name }) => name },
      {
        title: "APPLIED",
        value: ({ appliedAt }) => (appliedAt ? relative(appliedAt) : "not yet"),
        colour: ({ appliedAt }) => (appliedAt ? undefined : "yellow"),
      },
      {
        title: "FILE",
        value: ({ changed }) => (changed ? "changed since" : "same"),
        colour: (row) => (row.changed ? "red" : undefined),
      },
    ]),
  );
}

async function verify({ out, withOracle, settings }: Call<MigrateFlags>): Promise<void> {
  const { differences } = await withOracle((oracle) => oracle.withAdmin(verifySchema), { migrate: false });
  const schema = settings.ORACLE_SCHEMA;
  await out.show({ schema, differences }, () =>
    differences.length === 0 ? `Schema ${schema} is what the migrations make.` : differences.join("\n"),
  );
  if (differences.length === 0) return;
  const many = differences.length === 1 ? "1 place" : `${differences.length} places`;
  throw new OracleError("SCHEMA_DRIFT", `Schema ${schema} differs from what the migrations make in ${many}.`);
}

async function print({ out, settings }: Call<MigrateFlags>): Promise<void> {
  const sql = printMigrations(settings.ORACLE_SCHEMA);
  await out.show({ sql }, () => sql);
}

async function roles({ flags, out, withOracle }: Call<MigrateFlags>): Promise<void> {
  const { login, role, tenant } = flags;
  const use = tenant === undefined ? { roles: role ? [role] : [...programs] } : { tenantId: tenant };
  const { granted, items, logins } = await withOracle(
    (oracle) =>
      oracle.withAdmin(async (db) => {
        // First: it tells an installation that is not there.
        await readRoles(db);
        const granted = login === undefined ? undefined : await grantLogin(db, login, use);
        return { granted, items: await readRoles(db), logins: await readTenantLogins(db) };
      }),
    { migrate: false },
  );
  const tenants = logins.map(({ login, tenantId }) => ({ login, tenant_id: tenantId }));
  await out.show({ ...granted, items, tenants, next: null }, () =>
    [
      roleTable(items),
      ...(logins.length > 0 ? ["", loginTable(logins)] : []),
      ...passwordLines(granted),
    ].join("\n"),
  );
}

function passwordLines(granted: GrantedLogin | undefined): string[] {
  if (!granted?.password) return [];
  return ["", `Made the login ${granted.login}. Its password, shown only now: ${granted.password}`];
}

function roleTable(items: readonly RoleMembers[]): string {
  return table(items, [
    { title: "ROLE", value: ({ role }) => role },
    { title: "LOGINS", value: ({ members }) => (members.length === 0 ? null : members.join(", ")) },
    { title: "MAY", value: ({ about }) => about },
  ]);
}

function loginTable(logins: readonly TenantLogin[]): string {
  return table(logins, [
    { title: "LOGIN", value: ({ login }) => login },
    { title: "TENANT", value: ({ tenantId }) => tenantId },
  ]);
}
