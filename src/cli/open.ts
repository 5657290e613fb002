import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { connect } from "../connect.js";
import { OracleError } from "../core/errors.js";
import type { Settings } from "../core/settings.js";
import type { Oracle } from "../oracle.js";
import { isTransient } from "../store/database-errors.js";
import { withAdminClient } from "../store/migrate.js";
import { loadSettings, type RawSettings } from "./config.js";

/** How long a client command tries to reach the database. */
export const CLIENT_PATIENCE_MS = 4_000;
/** A silent host must not cost more than that patience, give or take. */
const CONNECT_TIMEOUT_SECONDS = 5;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;

export interface OpenOptions {
  /**
   * What to do with a schema that is missing or old: true brings it up to date, `embedded` does so only for the
   * embedded Postgres, whose schema nobody else looks after, and refuses it elsewhere; false takes any schema
   * as it is. Default `embedded`.
   */
  migrate?: boolean | "embedded";
  /** How long to try while the database does not answer. Default 4 s. */
  patienceMs?: number;
  /** For commands that need no orderly end of their own. */
  closeOnSignal?: boolean;
}

/** Opens the installation that the command's flags, the environment and the settings file name, and closes it. */
export async function withOracle<T>(
  command: Command,
  options: OpenOptions & { settings?: RawSettings },
  work: (oracle: Oracle) => Promise<T>,
): Promise<T> {
  return useOracle(await loadSettings(command, options.settings), options, work);
}

/** Opens, works and closes, whatever happens. */
export async function useOracle<T>(
  settings: Settings,
  options: OpenOptions,
  work: (oracle: Oracle) => Promise<T>,
): Promise<T> {
  const embedded = settings.DATABASE_URL === undefined;
  const oracle = await connect({ settings, embedded, connectTimeoutSeconds: CONNECT_TIMEOUT_SECONDS });
  const off = options.closeOnSignal ? closeOnSignal(oracle) : () => {};
  try {
    const { migrate = "embedded", patienceMs = CLIENT_PATIENCE_MS } = options;
    const mayMigrate = migrate === true || (migrate === "embedded" && embedded);
    const reach = () => (migrate === false ? oracle.withAdmin(login) : checkSchema(oracle, mayMigrate));
    await untilReachable(patienceMs, reach);
    return await work(oracle);
  } finally {
    await oracle.close();
    off();
  }
}

/** An embedded server that this command started would be left behind. */
function closeOnSignal(oracle: Oracle): () => void {
  const end = (signal: NodeJS.Signals) => {
    void oracle.close().finally(() => process.exit(signal === "SIGINT" ? 130 : 143));
  };
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  return () => {
    process.off("SIGINT", end);
    process.off("SIGTERM", end);
  };
}

/** Tries again while the database does not answer, ever more slowly, until the patience is used up. */
export async function untilReachable<T>(patienceMs: number, work: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + patienceMs;
  for (let delay = FIRST_DELAY_MS; ; delay = Math.min(delay * 2, LONGEST_DELAY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error) || performance.now() >= endsAt) throw error;
      await sleep(Math.min(delay, Math.max(0, endsAt - performance.now())));
    }
  }
}

async function checkSchema(oracle: Oracle, mayMigrate: boolean): Promise<void> {
  try {
    await oracle.check();
  } catch (error) {
    const old = error instanceof OracleError && ["SCHEMA_MISSING", "SCHEMA_OUTDATED"].includes(error.code);
    if (!mayMigrate || !old) throw error;
    await oracle.migrate();
  }
}

function login(db: Parameters<typeof withAdminClient>[0]): Promise<void> {
  return withAdminClient(db, async () => {});
}
