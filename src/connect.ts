import type { Dispatcher } from "./core/dispatch.js";
import { OracleError } from "./core/errors.js";
import { checkOptionNames, type OptionNames } from "./core/options.js";
import { rememberEnvironment } from "./core/secrets.js";
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
  /** Where artifacts' bytes are: `file:FOLDER` or `s3://BUCKET/PREFIX`. Default: the environment's ARTIFACTS. */
  artifacts?: string;
  /** Complete settings, in place of the environment's and of the four options they hold. */
  settings?: Settings;
  maxConnections?: number;
  /** Announces submitted jobs, and is where workers of this connection listen: see `oracle-worker/redis`. */
  dispatcher?: Dispatcher;
  /** How long one attempt to connect may take. Default 10. */
  connectTimeoutSeconds?: number;
}

const optionNames: OptionNames<ConnectOptions> = {
  databaseUrl: true,
  directDatabaseUrl: true,
  embedded: true,
  schema: true,
  artifacts: true,
  settings: true,
  maxConnections: true,
  dispatcher: true,
  connectTimeoutSeconds: true,
};

/** Opens a connection pool. It writes nothing until it is used. */
export async function connect(options: ConnectOptions = {}): Promise<Oracle> {
  if (process.env.ORACLE_WORKER_ISOLATED === "1") {
    // Without this a module that defines jobs and starts a worker would start one more in each thread and process.
    throw new OracleError(
      "HANDLERS_INVALID",
      "connect() was called where a handler runs in a thread or process: define such jobs in a module of their own, apart from the program that starts the worker.",
    );
  }
  checkOptionNames("connect", options, optionNames);
  const { databaseUrl, directDatabaseUrl, schema, artifacts, maxConnections, connectTimeoutSeconds } =
    options;
  // Before anything can go wrong and be told of.
  rememberEnvironment(process.env);
  const settings =
    options.settings ??
    readSettings(process.env, {
      DATABASE_URL: databaseUrl,
      DIRECT_DATABASE_URL: directDatabaseUrl,
      ORACLE_SCHEMA: schema,
      ARTIFACTS: artifacts,
    });
  if (options.embedded) {
    const embedded = await openEmbedded(options.embedded === true ? {} : options.embedded);
    const logins = [new URL(embedded.url).username];
    return new Oracle(settings, {
      url: embedded.url,
      admin: { url: embedded.adminUrl, logins },
      maxConnections,
      dispatcher: options.dispatcher,
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
    dispatcher: options.dispatcher,
    maxConnections,
    connectTimeoutSeconds,
  });
}
