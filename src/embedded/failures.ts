import { statfs } from "node:fs/promises";
import { OracleError } from "../core/errors.js";

const ELSEWHERE = "To use a PostgreSQL server of your own instead, set DATABASE_URL.";
const FULL = /No space left on device|Disk quota exceeded/i;
/** Less room than one WAL segment: Postgres cannot start, and may have had no room to log why. */
const LEAST_BYTES = 16 * 1024 * 1024;

export function unavailable(message: string, cause?: unknown): OracleError {
  return new OracleError("EMBEDDED_UNAVAILABLE", `${message} ${ELSEWHERE}`, { cause });
}

export function locked(message: string): OracleError {
  return new OracleError("EMBEDDED_LOCKED", `${message} ${ELSEWHERE}`);
}

function full(place: string, cause?: unknown): OracleError {
  return new OracleError(
    "DATABASE_FULL",
    `The disk that holds ${place} is full: make room there, then try again. ${ELSEWHERE}`,
    { cause },
  );
}

/** A Postgres program failed: what it said last decides what to tell the user. */
export async function programFailure(what: string, place: string, output: string): Promise<OracleError> {
  const room = await statfs(place).catch(() => undefined);
  if (FULL.test(output) || (room !== undefined && room.bavail * room.bsize < LEAST_BYTES)) return full(place);
  const lines = output.trim().split("\n").slice(-12).join("\n");
  return new OracleError(
    "EMBEDDED_UNAVAILABLE",
    `${what}. ${ELSEWHERE} It said last:\n${lines || "(nothing)"}`,
  );
}

/** Turns a failed system call into the error the user can act on; anything else passes unchanged. */
export function systemFailure(error: unknown, directory: string): unknown {
  if (!(error instanceof Error) || error instanceof OracleError || !("syscall" in error)) return error;
  const code = "code" in error ? error.code : undefined;
  if (code === "ENOSPC" || code === "EDQUOT") return full(directory, error);
  return unavailable(
    `The embedded Postgres cannot use ${directory}: ${error.message}. ` +
      "Choose a directory that this account owns and may write to.",
    error,
  );
}
