import { OracleError } from "./core/errors.js";
import { readSettings, type Settings } from "./core/settings.js";
import { openEmbedded } from "./embedded/index.js";
import { Oracle } from "./oracle.js";

export interface ConnectOptions {
  /** Default: the environment's DATABASE_URL. */
  databaseUrl?: string;
  /** Past a pooler, for LISTEN and migrations. Default: the environment's DIRECT_DATABASE_URL. */
  directDatabaseUrl?: string;
  /** A real Postgres under `.oracle-worker/`, or under the folder given; needs nothing installed. */
  embedded?: boolean | { directory: string };
  /** Default `oracle`, or the environment's ORACLE_SCHEMA. */
  schema?: string;
  /** Complete settings, in place of the environment's and of the three options they hold. */
  settings?: Settings;
  maxConnections?: number;
  /** How long one attempt to connect may take. Default 10. */
  connectTimeoutSeconds?: number;
}

/** Opens a connection pool. It writes nothing until it is used. */
export async function connect(options: ConnectOptions = {}): Promise<Oracle> {
  const { databaseUrl, directDatabaseUrl, schema, maxConnections, connectTimeoutSeconds } = options;
  const settings =
    options.settings ??
    readSettings(process.env, {
      DATABASE_URL: databaseUrl,
      DIRECT_DATABASE_URL: directDatabaseUrl,
      ORACLE_SCHEMA: schema,
    });
  if (options.embedded) {
    const embedded = await openEmbedded(options.embedded === true ? {} : options.embedded);
    const logins = [new URL(embedded.url).username];
    return new Oracle(settings, {
      url: embedded.url,
      admin: { url: embedded.adminUrl, logins },
      maxConnections,
      connectTimeoutSeconds,
      onClose: () => embedded.release(),
    });
  }
  const url = settings.DATABASE_URL;
  if (url === undefined) {
    throw new OracleError(
      "INVALID_ARGUMENT",
      "No database given: pass databaseUrl, set DATABASE_URL, or pass { embedded: true }.",
      { field: "databaseUrl" },
    );
  }
  return new Oracle(settings, {
    url,
    directUrl: settings.DIRECT_DATABASE_URL,
    maxConnections,
    connectTimeoutSeconds,
  });
}
