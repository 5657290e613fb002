import type pg from "pg";
import { OracleError } from "../core/errors.js";

/** Makes the login a member in both ways: SET for connections that take the role, INHERIT behind a pooler. */
export async function grantTo(
  client: pg.Client,
  schema: string,
  login: string,
  roles: string[],
): Promise<void> {
  const names = roles.map((role) => `${schema}_${role}`).join(", ");
  const grant = `GRANT ${names} TO ${client.escapeIdentifier(login)}`;
  // Before 16 a membership is always both, and the login's own INHERIT decides.
  const { rows } = await client.query<{ separate: boolean }>(
    "SELECT current_setting('server_version_num')::integer >= 160000 AS separate",
  );
  await client.query(rows[0]?.separate ? `${grant} WITH INHERIT TRUE, SET TRUE` : grant).catch(needs(grant));
}

/** For a statement that an administrator could run where this login may not. */
export function needs(sql: string): (error: unknown) => never {
  return (error) => {
    const { code, message } = error as { code?: string; message?: string };
    if (code !== "42501") throw error;
    throw new OracleError(
      "ROLE_REFUSED",
      `This login may not do it (${message}). As an administrator: ${sql}.`,
      {
        cause: error,
      },
    );
  };
}
