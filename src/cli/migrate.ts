import { Argument, type Command } from "commander";
import { OracleError } from "../core/errors.js";
import { migrationStatus, printMigrations } from "../store/migrate.js";
import { latestMigration } from "../store/migrations.js";
import { grantRoles, type RoleMembers, readRoles } from "../store/roles.js";
import { verifySchema } from "../store/verify-schema.js";
import { action, type Call, examples } from "./command.js";
import { parseText } from "./parse.js";
import { table } from "./table.js";
import { relative } from "./time.js";

interface MigrateFlags {
  login?: string;
}

const steps = { up, status, verify, print, roles };
type Step = keyof typeof steps;

const LONGEST_ROLE_NAME = 63;

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
      "with roles: let this login act as worker and server",
      parseText("--login", LONGEST_ROLE_NAME),
    )
    .addHelpText(
      "after",
      examples(
        "oracle-worker migrate",
        "oracle-worker migrate status",
        "oracle-worker migrate print > review.sql",
        "oracle-worker migrate roles --login app",
      ),
    )
    .action(action<MigrateFlags>(migrateCommand));
}

async function migrateCommand(call: Call<MigrateFlags>, step: string): Promise<void> {
  if (call.flags.login !== undefined && step !== "roles") {
    throw new OracleError("INVALID_ARGUMENT", "--login goes with `migrate roles` only.", {
      field: "--login",
    });
  }
  await steps[step as Step](call);
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
  const { login } = flags;
  const items = await withOracle(
    (oracle) =>
      oracle.withAdmin(async (db) => {
        if (login !== undefined) await grantRoles(db, login);
        return readRoles(db);
      }),
    { migrate: false },
  );
  await out.show({ items, next: null }, () => roleTable(items));
}

function roleTable(items: readonly RoleMembers[]): string {
  return table(items, [
    { title: "ROLE", value: ({ role }) => role },
    { title: "LOGINS", value: ({ members }) => (members.length === 0 ? null : members.join(", ")) },
    { title: "MAY", value: ({ about }) => about },
  ]);
}
