import pg from "pg";
import { type ErrorCode, OracleError } from "../core/errors.js";

interface PgError extends Error {
  code?: string;
  detail?: string;
}

const unreachable = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "53300", // too_many_connections
  "25006", // a demoted primary: this connection will never write again
  "08000",
  "08003",
  "08006",
]);

const byCode: Record<string, [ErrorCode, string]> = {
  "28P01": ["DATABASE_AUTH", "check the user and password in DATABASE_URL"],
  "28000": ["DATABASE_AUTH", "check the user in DATABASE_URL and the server's pg_hba.conf"],
  "3D000": ["DATABASE_UNREACHABLE", "create the database or name another in DATABASE_URL"],
  "53100": ["DATABASE_FULL", "free space on the server's disk; nothing of this call was stored"],
  "3F000": ["SCHEMA_MISSING", "run `oracle-worker migrate`"],
  "42P01": ["SCHEMA_MISSING", "run `oracle-worker migrate`"],
  "42883": ["SCHEMA_OUTDATED", "run `oracle-worker migrate`"],
  "42703": ["SCHEMA_OUTDATED", "run `oracle-worker migrate`"],
};

/** Turns what the driver throws into a coded error; anything unknown stays as it is. */
export function toDatabaseError(error: unknown, schema: string): unknown {
  if (error instanceof OracleError || !(error instanceof Error)) return error;
  const { code, message } = error as PgError;
  const known = code ? byCode[code] : undefined;
  if (known) return new OracleError(known[0], `${message}: ${known[1]}.`, { cause: error });
  const limit = /^(QUOTA_EXCEEDED|RATE_LIMITED): (.*)$/s.exec(message);
  if (limit) return limitReached(limit[1] as ErrorCode, `${limit[2]}.`, error);
  // Every role of ours may enter the schema: a login that may not has none of them.
  if (code === "42501" && /set role|permission denied (to set|for schema)/i.test(message))
    return roleRefused(error, schema);
  // The role of the connection's start, not its login: that one missing is 28000.
  if (code === "22023" && /^role ".*" does not exist$/.test(message)) return schemaMissing(error, schema);
  const lost =
    /Connection terminated|connection timeout|read timeout|timeout exceeded|timeout expired|server closed/i;
  if ((code && unreachable.has(code)) || lost.test(message)) {
    // A refused dual-stack connection has an empty message and its parts in `errors`.
    const said =
      message || (error instanceof AggregateError ? String(error.errors[0]?.message) : String(code));
    return new OracleError("DATABASE_UNREACHABLE", `The database does not answer: ${said}.`, {
      cause: error,
    });
  }
  return error;
}

/** Raised by check_quotas, which says in the detail when to try again. */
function limitReached(code: ErrorCode, said: string, error: PgError): OracleError {
  const seconds = /retry_after_seconds=([\d.]+)/.exec(error.detail ?? "")?.[1];
  return new OracleError(code, said.replace(/^tenant/, "Tenant"), {
    field: "tenant",
    ...(seconds === undefined ? {} : { retryAfterSeconds: Number(seconds) }),
    cause: error,
  });
}

function schemaMissing(error: PgError, schema: string): OracleError {
  return new OracleError(
    "SCHEMA_MISSING",
    `The schema ${schema} has not been made in this database (${error.message}): run \`oracle-worker migrate\`.`,
    { cause: error },
  );
}

function roleRefused(error: PgError, schema: string): OracleError {
  const role = /set role "([^"]+)"/.exec(error.message)?.[1] ?? `${schema}_worker`;
  const mend =
    role === `${schema}_owner`
      ? "Use the login that migrates"
      : `As an administrator: \`oracle-worker migrate roles --login NAME\`, or GRANT ${role} TO NAME; behind a pooler also ALTER ROLE NAME INHERIT`;
  return new OracleError("ROLE_REFUSED", `The login may not act as ${role} (${error.message}). ${mend}.`, {
    cause: error,
  });
}

/** Whether trying the same call again later can succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof OracleError) return error.code === "DATABASE_UNREACHABLE";
  const code = error instanceof Error ? (error as PgError).code : undefined;
  // Serialization failure, deadlock, lock timeout, cancelled by an administrator, disk full for a while.
  return code !== undefined && ["40001", "40P01", "55P03", "57014", "53200", "53400"].includes(code);
}

/** Whether the server has refused the statement, so that nothing of it is stored. After anything else, who knows. */
export function isRefused(error: unknown): boolean {
  const said = error instanceof OracleError ? error.cause : error;
  return said instanceof pg.DatabaseError && !unreachable.has(said.code ?? "");
}
