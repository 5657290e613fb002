import { OracleError } from "../../core/errors.js";
import type { Database } from "../../store/database.js";
import { withOwner } from "../../store/owner.js";
import { createToken, listTokens, revokeToken, type Token } from "../../store/tokens.js";
import { tenantOf } from "../auth.js";
import type { Handlers, Services } from "../call.js";
import { iso, isoOrNull } from "../to-json.js";
import type { TokenJson } from "../types.js";

/** Tokens are the owner's: the server's own role neither makes nor reads them. */
export function tokenRoutes({ oracle }: Services): Handlers<"listTokens" | "addToken" | "revokeToken"> {
  const asOwner = <T>(work: (db: Database) => Promise<T>): Promise<T> =>
    oracle
      .withAdmin((db) => withOwner(db, work))
      .catch((error: unknown) => {
        throw isRoleRefused(error) ? notOwner(error) : error;
      });
  /** Whoever is bound to a tenant knows that tenant's tokens only. */
  const visible = async (tenant: string | undefined): Promise<Token[]> => {
    const tokens = await asOwner((db) => listTokens(db, tenant));
    return tokens.filter(({ tenantId }) => tenant === undefined || tenantId === tenant);
  };
  return {
    listTokens: async ({ tenant }) => ({ items: (await visible(tenant)).map(tokenJson), next: null }),

    async addToken({ body, identity, reply }) {
      const { role, name } = body;
      if (body.tenant_id === null && identity.tenantId !== null) {
        throw new OracleError("FORBIDDEN", "Only a token for all tenants makes another one.");
      }
      const tenantId = body.tenant_id === null ? null : (tenantOf(identity, body.tenant_id) ?? null);
      const made = await asOwner((db) => createToken(db, { tenantId, role, name }));
      reply.code(201);
      return { ...tokenJson(made), token: made.token };
    },

    async revokeToken({ params: { token = "" }, tenant }) {
      const known = (await visible(tenant)).some(({ tokenId }) => tokenId === token.toLowerCase());
      if (!known) throw new OracleError("TOKEN_NOT_FOUND", "There is no such token.", { field: "token" });
      await asOwner((db) => revokeToken(db, token));
      return undefined;
    },
  };
}

function isRoleRefused(error: unknown): boolean {
  return error instanceof OracleError && error.code === "ROLE_REFUSED";
}

function notOwner(cause: unknown): OracleError {
  const message =
    "This server's login may not make or read tokens, which is well. Use `oracle-worker tenants` with the login that migrates.";
  return new OracleError("FORBIDDEN", message, { cause });
}

function tokenJson(token: Token): TokenJson {
  return {
    token_id: token.tokenId,
    tenant_id: token.tenantId,
    role: token.role,
    name: token.name,
    created_at: iso(token.createdAt),
    last_used_at: isoOrNull(token.lastUsedAt),
    revoked_at: isoOrNull(token.revokedAt),
  };
}
