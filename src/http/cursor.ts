import { OracleError } from "../core/errors.js";

export const uuidShape = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** A cursor says where the next page begins; what is in it is nobody's business but ours. */
export function toCursor(parts: (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/** Checks one that came back: it must be of the shape that this list gives out. */
export function fromCursor(cursor: string, shape: RegExp): string[] {
  const parts = decode(cursor);
  if (parts && shape.test(parts.join(" "))) return parts;
  throw new OracleError("INVALID_ARGUMENT", "cursor is not one that this list has given.", {
    field: "cursor",
  });
}

function decode(cursor: string): string[] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(parts) ? parts.map(String) : undefined;
  } catch {
    return undefined;
  }
}
