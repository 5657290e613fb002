import pg from "pg";
import { OracleError } from "../core/errors.js";
import { rememberAddress } from "../core/secrets.js";
import { toDatabaseError } from "./database-errors.js";

/** One SQL operation: its text names the schema as `{schema}`, its row type is what the caller reads. */
export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  readonly rowMode?: "array";
  /** Never set; carries the row type. */
  readonly row?: Row;
}

export function statement<Row>(name: string, text: string): Statement<Row> {
  return { name, text };
}

/** One whose rows are arrays of the columns' values: by name they take twice as long to read. */
export function arrayStatement<Row extends unknown[]>(name: string, text: string): Statement<Row> {
  return { name, text, rowMode: "array" };
}

/** The part of a `pg` client that joins a statement to the caller's own transaction. */
export interface SqlClient {
  query(config: {
    name?: string;
    text: string;
    values?: unknown[];
    rowMode?: "array";
    /** `extended`: one statement only, also without values. */
    queryMode?: "extended";
  }): Promise<{ rows: unknown[] }>;
}

export interface DatabaseOptions {
  url: string;
  /** Past a pooler: LISTEN and migrations. Its presence also says that `url` may be a pooler. */
  directUrl?: string | undefined;
  schema?: string;
  /** The restricted role every connection takes with its first statement. */
  role?: "worker" | "server" | "owner";
  maxConnections?: number;
  /** Default 10 s. */
  connectTimeoutMs?: number;
  applicationName?: string;
  /** Hot statements keep one plan whatever the tables hold. See docs/decisions/0004-pinned-plans.md. */
  pinPlans?: boolean;
}

const ask = statement<{ ok: number }>("ping", "SELECT 1 AS ok");

const pinnedPlans = [
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off",
  "enable_sort=off",
  "plan_cache_mode=force_generic_plan",
];

// Both end with the transaction, whatever pooler is in between: no connection goes back with a tenant on it.
const actForTenant = statement<never>(
  "act-for-tenant",
  `SELECT set_config('role', '{schema}_server', true), set_config('{schema}.tenant_id', $1, true)`,
);

const actForEveryTenant = statement<never>(
  "act-for-every-tenant",
  `SELECT set_config('role', '{schema}_server', true), set_config('{schema}.every_tenant', 'on', true)`,
);

/** A client-side deadline on every call: a half-open connection would otherwise be waited for without end. */
const CALL_TIMEOUT_MS = 30_000;

export class Database {
  readonly schema: string;
  readonly directUrl: string;
  readonly connectTimeoutMs: number;
  private readonly pool: pg.Pool;
  private readonly prepared: boolean;
  private readonly rendered = new Map<string, string>();
  /** Set in a view of one transaction, which all its statements join. */
  private readonly joined: SqlClient | undefined;

  constructor(readonly options: DatabaseOptions) {
    for (const address of [options.url, options.directUrl ?? ""]) rememberAddress(address);
    this.schema = checkSchemaName(options.schema ?? "oracle");
    this.directUrl = options.directUrl ?? options.url;
    this.connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    // Behind a pooler in transaction mode a statement prepared on one connection is run on another.
    this.prepared = options.directUrl === undefined;
    this.pool = new pg.Pool({
      ...this.connectionConfig(options.url),
      max: options.maxConnections ?? 4,
      idleTimeoutMillis: 30_000,
    });
    // An idle connection that breaks is replaced by the pool; the next query reports what matters.
    this.pool.on("error", () => {});
  }

  /** The same database with another pool size, role or planner settings. */
  with(changes: Partial<DatabaseOptions>): Database {
    return new Database({ ...this.options, ...changes });
  }

  connectionConfig(url: string): pg.ClientConfig {
    const { role, pinPlans, applicationName, directUrl } = this.options;
    // A pooler in transaction mode knows no settings at the start of a session.
    const pooled = directUrl !== undefined && url !== directUrl;
    const settings = [
      ...(role && !pooled ? [`role=${this.schema}_${role}`] : []),
      ...(pinPlans && !pooled ? [...pinnedPlans, "jit=off"] : []),
    ];
    return {
      connectionString: url,
      application_name: applicationName ?? "oracle-worker",
      keepAlive: true,
      connectionTimeoutMillis: this.connectTimeoutMs,
      query_timeout: CALL_TIMEOUT_MS,
      ...(settings.length > 0 ? { options: settings.map((setting) => `-c ${setting}`).join(" ") } : {}),
    };
  }

  /** `text` with the schema's name filled in. */
  render(text: string): string {
    let rendered = this.rendered.get(text);
    if (rendered === undefined) {
      rendered = text.replaceAll("{schema}", this.schema);
      this.rendered.set(text, rendered);
    }
    return rendered;
  }

  async query<Row>(
    sql: Statement<Row>,
    values: unknown[],
    client: SqlClient | undefined = this.joined,
  ): Promise<Row[]> {
    const text = this.render(sql.text);
    const ours = client === this.joined;
    try {
      const target: SqlClient = client ?? this.pool;
      const result = await target.query({
        // A caller's connection is not ours to keep prepared statements on.
        ...(ours && this.prepared ? { name: sql.name } : {}),
        ...(sql.rowMode ? { rowMode: sql.rowMode } : {}),
        text,
        values,
      });
      return result.rows as Row[];
    } catch (error) {
      throw toDatabaseError(error, this.schema);
    }
  }

  /** One transaction, or a part of the one this is a view of. */
  async transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T> {
    if (this.joined) return work(this.joined);
    const client = await this.pool.connect().catch((error: unknown) => {
      throw toDatabaseError(error, this.schema);
    });
    let failure: Error | undefined;
    // A connection that breaks between two statements says so here; unheard, it would end the process.
    const onError = (error: Error) => {
      failure = error;
    };
    client.on("error", onError);
    try {
      await client.query("BEGIN");
      const value = await work(client);
      await client.query("COMMIT");
      return value;
    } catch (error) {
      await client.query("ROLLBACK").catch((broken: Error) => {
        failure = broken;
      });
      throw toDatabaseError(error, this.schema);
    } finally {
      client.off("error", onError);
      client.release(failure);
    }
  }

  /** Undefined when the database answers, otherwise why not. */
  async ping(): Promise<string | undefined> {
    try {
      await this.query(ask, []);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /**
   * Acts for one tenant as the server's role. Everything done with the database that `work` is given is one
   * transaction, sees that tenant's rows only, and is undone if `work` throws.
   */
  async asTenant<T>(tenantId: string, work: (db: Database) => Promise<T>): Promise<T> {
    return this.acting(actForTenant, [checkTenantId(tenantId)], work);
  }

  /** The same for somebody who sees every tenant. It can look but not change: a change is made for one tenant. */
  async asEveryTenant<T>(work: (db: Database) => Promise<T>): Promise<T> {
    return this.acting(actForEveryTenant, [], work);
  }

  private acting<T>(as: Statement<never>, values: unknown[], work: (db: Database) => Promise<T>): Promise<T> {
    if (this.joined)
      throw new OracleError("INTERNAL", "asTenant inside asTenant: one transaction, one tenant");
    return this.transaction(async (client) => {
      await this.query(as, values, client);
      return work(Object.create(this, { joined: { value: client } }));
    });
  }

  poolUse(): { busy: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.pool;
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  async close(): Promise<void> {
    if (!this.pool.ended) await this.pool.end();
  }
}

/** The schema's name is put into SQL as it is, so it may only be a plain lower-case identifier. */
function checkSchemaName(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,39}$/.test(name) && !name.startsWith("pg_")) return name;
  throw new OracleError(
    "INVALID_SETTING",
    `ORACLE_SCHEMA is ${JSON.stringify(name)}; it must be lower-case letters, digits and _, begin with a letter or _, not with pg_, and have at most 40 characters.`,
    { field: "ORACLE_SCHEMA" },
  );
}

/** The database would show nothing for an empty one; said here, it is an error and not an empty answer. */
export function checkTenantId(tenantId: string): string {
  const fit = typeof tenantId === "string" && tenantId.length >= 1 && tenantId.length <= 200;
  if (fit && !tenantId.includes("\0") && tenantId.isWellFormed()) return tenantId;
  throw new OracleError("INVALID_ARGUMENT", "A tenant's name has 1 to 200 characters.", { field: "tenant" });
}
