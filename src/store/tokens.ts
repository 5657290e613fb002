import { OracleError } from "../core/errors.js";
import { isToken, newToken, type TokenRole, tokenHash } from "../core/tokens.js";
import { checkTenantId, type Database, statement } from "./database.js";

export interface Token {
  tokenId: string;
  /** Null: every tenant. */
  tenantId: string | null;
  role: TokenRole;
  name: string | null;
  createdAt: Date;
  /** To the minute. */
  lastUsedAt: Date | null;
  revokedAt: Date | null;
}

interface TokenRow {
  token_id: string;
  tenant_id: string | null;
  role: TokenRole;
  name: string | null;
  created_at: Date;
  last_used_at: Date | null;
  revoked_at: Date | null;
}

const columns = "token_id, tenant_id, role, name, created_at, last_used_at, revoked_at";

const insertToken = statement<TokenRow>(
  "create-token",
  `INSERT INTO {schema}.tokens (tenant_id, role, name, token_hash) VALUES ($1, $2, $3, $4) RETURNING ${columns}`,
);

// 009_tokens.sql: no row for a token that is unknown or revoked.
const verify = statement<{ token_id: string; tenant_id: string | null; role: TokenRole }>(
  "verify-token",
  `SELECT token_id, tenant_id, role FROM {schema}.verify_token($1)`,
);

const anyToken = statement<{ any: boolean }>("any-token", `SELECT {schema}.has_tokens() AS any`);

const revoke = statement<TokenRow>(
  "revoke-token",
  `UPDATE {schema}.tokens SET revoked_at = coalesce(revoked_at, clock_timestamp())
   WHERE token_hash = $1 OR token_id = $2 RETURNING ${columns}`,
);

const list = statement<TokenRow>(
  "list-tokens",
  `SELECT ${columns} FROM {schema}.tokens WHERE $1::text IS NULL OR tenant_id = $1 OR tenant_id IS NULL
   ORDER BY created_at, token_id`,
);

/** Makes a token and shows it this once. `db` acts as the owner: neither workers nor servers make tokens. */
export async function createToken(
  db: Database,
  options: { tenantId: string | null; role: TokenRole; name?: string | undefined },
): Promise<Token & { token: string }> {
  const { tenantId, role, name } = options;
  const token = newToken();
  const tenant = tenantId === null ? null : checkTenantId(tenantId);
  const [row] = await db.query(insertToken, [tenant, role, name, tokenHash(token)]);
  return { token, ...toToken(row as TokenRow) };
}

/**
 * Whose token it is; undefined for one that is malformed, unknown or revoked. `db` acts as the server.
 * @public
 */
export async function verifyToken(
  db: Database,
  token: string,
): Promise<Pick<Token, "tokenId" | "tenantId" | "role"> | undefined> {
  if (!isToken(token)) return undefined;
  const [row] = await db.query(verify, [tokenHash(token)]);
  return row && { tokenId: row.token_id, tenantId: row.tenant_id, role: row.role };
}

/** Whether anybody could come in. `db` acts as the server. */
export async function hasTokens(db: Database): Promise<boolean> {
  return (await db.query(anyToken, []))[0]?.any === true;
}

/** Ends a token, given itself or its id, from the next request on; a second call changes nothing. */
export async function revokeToken(db: Database, tokenOrId: string): Promise<Token> {
  const isId = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(tokenOrId);
  if (!isId && !isToken(tokenOrId)) {
    const message = "That is neither a token (owt_…) nor a token's id (a UUID).";
    throw new OracleError("INVALID_ARGUMENT", message, { field: "token" });
  }
  const [row] = await db.query(revoke, [isId ? null : tokenHash(tokenOrId), isId ? tokenOrId : null]);
  if (!row) throw new OracleError("TOKEN_NOT_FOUND", "There is no such token.", { field: "token" });
  return toToken(row);
}

/** Every token, or those that open one tenant; revoked ones too. */
export async function listTokens(db: Database, tenantId?: string): Promise<Token[]> {
  return (await db.query(list, [tenantId])).map(toToken);
}

function toToken(row: TokenRow): Token {
  return {
    tokenId: row.token_id,
    tenantId: row.tenant_id,
    role: row.role,
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}
