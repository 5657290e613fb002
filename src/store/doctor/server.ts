import { withAdminClient } from "../migrate.js";
import { type Check, fail, ok, warn } from "./check.js";

const NEWEST_TRIED = 18;

/** A version that was tried, and an encoding that holds every text. */
export const server: Check = {
  name: "server",
  async examine({ admin }) {
    const { version, major, encoding } = await withAdminClient(admin, async (client) => {
      const { rows } = await client.query<{ version: string; major: number; encoding: string }>(
        `SELECT current_setting('server_version') AS version,
           current_setting('server_version_num')::integer / 10000 AS major,
           current_setting('server_encoding') AS encoding`,
      );
      return rows[0] ?? { version: "?", major: 0, encoding: "?" };
    });
    if (encoding !== "UTF8") {
      const fix = "create a database with ENCODING 'UTF8' TEMPLATE template0 and move there";
      return [fail(`the database's encoding is ${encoding}`, fix)];
    }
    if (major < 13) return [fail(`PostgreSQL ${version} is too old`, "use 13 or newer")];
    if (major > NEWEST_TRIED) {
      const message = `PostgreSQL ${version} is newer than any version this program was tried with`;
      return [warn(message, `use ${NEWEST_TRIED}, or a newer oracle-worker`)];
    }
    return ok(`PostgreSQL ${version}, ${encoding}`);
  },
};
