import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { OracleError } from "../core/errors.js";
import type { Access } from "./operations.js";
import { roles } from "./schemas/common.js";
import type { Role } from "./types.js";

/** Who calls: what they may do, and for which tenant. */
export interface Identity {
  role: Role;
  /** Null: every tenant. */
  tenantId: string | null;
}

/** Knows tokens. */
export interface Authenticator {
  /** Undefined for a token that is unknown or revoked. */
  identify(token: string): Promise<Identity | undefined>;
  /** The token that a one-time code stands for; the second time it stands for nothing. */
  redeem(code: string): string | undefined;
}

const REMEMBER_MS = 2_000;
const REMEMBER_MOST = 1_000;

/** Tokens of the database, remembered for two seconds: so long a revoked one may still be let in. */
export class TokenAuthenticator implements Authenticator {
  private readonly known = new Map<string, { identity: Identity; until: number }>();

  constructor(private readonly look: (token: string) => Promise<Identity | undefined>) {}

  async identify(token: string): Promise<Identity | undefined> {
    const remembered = this.known.get(token);
    if (remembered && remembered.until > performance.now()) return remembered.identity;
    const identity = await this.look(token);
    if (this.known.size >= REMEMBER_MOST) this.known.clear();
    if (identity) this.known.set(token, { identity, until: performance.now() + REMEMBER_MS });
    else this.known.delete(token);
    return identity;
  }

  redeem(): undefined {}
}

/**
 * The login of `dev`: one token that lives as long as the process and sees everything, given out through a code
 * that works once. Other tokens are the database's.
 */
export class DevAuthenticator implements Authenticator {
  readonly code = randomBytes(16).toString("base64url");
  private readonly token = randomBytes(32).toString("base64url");
  private redeemed = false;

  constructor(private readonly others: Authenticator) {}

  async identify(token: string): Promise<Identity | undefined> {
    if (same(token, this.token)) return { role: "admin", tenantId: null };
    return this.others.identify(token);
  }

  redeem(code: string): string | undefined {
    if (this.redeemed || !same(code, this.code)) return undefined;
    this.redeemed = true;
    return this.token;
  }
}

function same(given: string, right: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(right));
}

/** Refuses a caller whose role, or whose tenant, is not enough. */
export function checkAccess(identity: Identity, access: Access, allTenants: boolean): void {
  if (access !== "public" && roles.indexOf(identity.role) < roles.indexOf(access)) {
    throw new OracleError("FORBIDDEN", `This needs the role ${access}; the token's is ${identity.role}.`);
  }
  if (allTenants && identity.tenantId !== null) {
    throw new OracleError("FORBIDDEN", "This concerns every tenant; the token is bound to one.");
  }
}

/** The tenant a call acts for: the token's, or for a token of all tenants the one it names, if any. */
export function tenantOf(identity: Identity, named: string | undefined): string | undefined {
  if (identity.tenantId === null) return named;
  if (named === undefined || named === identity.tenantId) return identity.tenantId;
  throw new OracleError("FORBIDDEN", "The token is bound to another tenant.", { field: "tenant" });
}
