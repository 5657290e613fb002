import { migrationStatus } from "../migrate.js";
import { latestMigration } from "../migrations.js";
import { type Check, fail, ok, warn } from "./check.js";

/** The schema is the one this program was made for. */
export const migrations: Check = {
  name: "migrations",
  async examine({ admin }) {
    const status = await migrationStatus(admin);
    const missing = status.filter(({ appliedAt }) => appliedAt === null);
    if (missing.length > 0) {
      const names = missing.map(({ name }) => name).join(", ");
      return [fail(`not applied: ${names}`, "run `oracle-worker migrate`")];
    }
    const changed = status.filter((migration) => migration.changed).map(({ name }) => name);
    if (changed.length > 0) {
      const message = `changed since they were applied: ${changed.join(", ")}`;
      return [warn(message, "see what differs with `oracle-worker migrate verify`")];
    }
    return ok(`at migration ${latestMigration()}`);
  },
};
