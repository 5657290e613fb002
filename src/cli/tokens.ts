import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { type TokenRole, tokenRoles } from "../core/tokens.js";
import { checkTenantId, type Database } from "../store/database.js";
import { withOwner } from "../store/owner.js";
import { createToken, listTokens, revokeToken, type Token } from "../store/tokens.js";
import { nameLengths } from "../submit.js";
import { action, type Call, examples } from "./command.js";
import { parseOneOf, parseText } from "./parse.js";
import { table } from "./table.js";
import { relative } from "./time.js";

interface TokenFlags {
  role: TokenRole;
  all?: boolean;
  name?: string;
}

/** The part of `tenants` that is about tokens. */
export function registerTokens(tenants: Command): void {
  tenants
    .command("token")
    .description("make a token for callers by HTTP; it is shown once and only its hash is kept")
    .argument("[tenant]", "the tenant it opens")
    .requiredOption(
      "--role <role>",
      `what it allows: ${tokenRoles.join(", ")}`,
      parseOneOf("--role", tokenRoles),
    )
    .option("--all", "opens every tenant")
    .option("--name <name>", "a label to know it by", parseText("--name", nameLengths.tenant))
    .addHelpText(
      "after",
      examples(
        "oracle-worker tenants token team-a --role operator --name ci",
        "oracle-worker tenants token --all --role admin",
      ),
    )
    .action(action<TokenFlags>(tokenCommand));
  tenants
    .command("revoke")
    .description("end a token; the next request with it is refused")
    .argument("<token>", "the token, or its id, which unlike the token may be seen in `ps`")
    .addHelpText("after", examples("oracle-worker tenants revoke 3f0c3c1e-6f5f-4d6e-9a57-0f6f3a6f2b11"))
    .action(action(revokeCommand));
  tenants
    .command("tokens")
    .description("tokens there are, and when each was last used")
    .argument("[tenant]", "only those that open this tenant")
    .addHelpText("after", examples("oracle-worker tenants tokens team-a"))
    .action(action(tokensCommand));
}

async function tokenCommand(call: Call<TokenFlags>, tenant?: string): Promise<void> {
  const { flags, out } = call;
  if ((tenant === undefined) === (flags.all !== true)) {
    throw new OracleError("INVALID_ARGUMENT", "Give either a tenant or --all.", { field: "tenant" });
  }
  const tenantId = tenant === undefined ? null : checkTenantId(tenant);
  const made = await asOwner(call, (db) => createToken(db, { tenantId, role: flags.role, name: flags.name }));
  await out.show({ token: made.token, ...tokenJson(made) }, () => made.token);
  out.note("Keep it: it is shown only now.");
}

async function revokeCommand(call: Call<unknown>, given: string): Promise<void> {
  const token = await asOwner(call, (db) => revokeToken(db, given));
  await call.out.show(tokenJson(token), () => `Token ${token.tokenId} is revoked`);
}

async function tokensCommand(call: Call<unknown>, tenant?: string): Promise<void> {
  const tokens = await asOwner(call, (db) => listTokens(db, tenant));
  await call.out.show({ items: tokens.map(tokenJson), next: null }, () =>
    tokens.length === 0 ? "No tokens." : tokenTable(tokens),
  );
}

/** Workers and servers, whose login a machine in the fleet has, make no tokens. */
function asOwner<T>({ withOracle }: Call<unknown>, work: (db: Database) => Promise<T>): Promise<T> {
  return withOracle((oracle) => oracle.withAdmin((db) => withOwner(db, work)));
}

function tokenJson(token: Token) {
  return {
    token_id: token.tokenId,
    tenant_id: token.tenantId,
    role: token.role,
    name: token.name,
    created_at: token.createdAt,
    last_used_at: token.lastUsedAt,
    revoked_at: token.revokedAt,
  };
}

function tokenTable(tokens: readonly Token[]): string {
  return table(tokens, [
    { title: "TOKEN ID", value: ({ tokenId }) => tokenId },
    { title: "TENANT", value: ({ tenantId }) => tenantId ?? "(all)" },
    { title: "ROLE", value: ({ role }) => role },
    { title: "NAME", value: ({ name }) => name },
    { title: "MADE", value: ({ createdAt }) => relative(createdAt) },
    { title: "LAST USED", value: ({ lastUsedAt }) => lastUsedAt && relative(lastUsedAt) },
    {
      title: "STATE",
      value: ({ revokedAt }) => (revokedAt ? "revoked" : "good"),
      colour: ({ revokedAt }) => (revokedAt ? "dim" : "green"),
    },
  ]);
}
