import { beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../dist/store/database.js";
import { withOwner } from "../dist/store/owner.js";
import { createToken, listTokens, revokeToken, verifyToken } from "../dist/store/tokens.js";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const login = useLogins(db);
let server: Database;
beforeAll(async () => {
  server = db.oracle.db.with({ role: "server" });
  return () => server.close();
});

const make = (tenantId: string | null, role: "viewer" | "operator" | "admin" = "viewer") =>
  withOwner(db.oracle.db, (owner) => createToken(owner, { tenantId, role }));

describe("a token", () => {
  it("says whose it is, and is kept as a hash only", async () => {
    const { token, tokenId } = await make("team-a", "operator");
    expect(token).toMatch(/^owt_[A-Za-z0-9_-]{43}$/);
    expect(await verifyToken(server, token)).toEqual({ tokenId, tenantId: "team-a", role: "operator" });
    const [row] = await db.sql("SELECT t::text AS everything FROM oracle.tokens t WHERE token_id = $1", [
      tokenId,
    ]);
    expect(row?.everything).not.toContain(token.slice(4));
    const every = await make(null, "admin");
    expect(await verifyToken(server, every.token)).toMatchObject({ tenantId: null, role: "admin" });
  });

  it("is refused when it is unknown, malformed or cut short", async () => {
    const { token } = await make("team-a");
    for (const wrong of [
      "",
      "owt_",
      token.slice(0, -1),
      `${token}x`,
      token.toUpperCase(),
      `owt_${"A".repeat(43)}`,
    ]) {
      expect(await verifyToken(server, wrong), wrong).toBeUndefined();
    }
  });

  it("is refused from the moment it is revoked, by itself or by its id", async () => {
    for (const by of ["token", "tokenId"] as const) {
      const made = await make("team-a");
      expect(await verifyToken(server, made.token)).toBeDefined();
      const revoked = await withOwner(db.oracle.db, (owner) => revokeToken(owner, made[by]));
      expect(await verifyToken(server, made.token)).toBeUndefined();
      const again = await withOwner(db.oracle.db, (owner) => revokeToken(owner, made[by]));
      expect(again.revokedAt).toEqual(revoked.revokedAt);
    }
    const unknown = withOwner(db.oracle.db, (owner) => revokeToken(owner, `owt_${"A".repeat(43)}`));
    await expect(unknown).rejects.toMatchObject({ code: "TOKEN_NOT_FOUND" });
  });

  it("notes its use at most once a minute, and nobody waits for the note", async () => {
    const { token, tokenId } = await make("team-a");
    const used = async () =>
      (await db.sql("SELECT last_used_at, xmin::text FROM oracle.tokens WHERE token_id = $1", [tokenId]))[0];
    expect((await used())?.last_used_at).toBeNull();
    await verifyToken(server, token);
    const first = await used();
    expect(first?.last_used_at).not.toBeNull();
    await verifyToken(server, token);
    expect(await used()).toEqual(first);

    await db.sql(
      "UPDATE oracle.tokens SET last_used_at = clock_timestamp() - interval '61 s' WHERE token_id = $1",
      [tokenId],
    );
    // Another request is noting it and has not committed: this one must come through all the same.
    await server.asTenant("team-a", async (busy) => {
      expect(await verifyToken(busy, token)).toBeDefined();
      expect(await verifyToken(server, token)).toBeDefined();
    });
    expect((await used())?.last_used_at.getTime()).toBeGreaterThan(Date.now() - 60_000);
  });
});

describe("of tokens", () => {
  let program: TestLogin;
  beforeAll(async () => {
    program = await login({ roles: ["worker", "server"] });
    await make("team-a");
  });

  it.each(["oracle_worker", "oracle_server", "none"])(
    "a program's login as %s reads, makes and ends none",
    async (role) => {
      const client = await program.connect();
      await client.query(`SET ROLE ${role}`);
      for (const sql of [
        "SELECT * FROM oracle.tokens",
        "SELECT token_hash FROM oracle.tokens",
        "INSERT INTO oracle.tokens (role, token_hash) VALUES ('admin', sha256('x'))",
        "UPDATE oracle.tokens SET revoked_at = NULL",
        "DELETE FROM oracle.tokens",
      ]) {
        await expect(client.query(sql), sql).rejects.toMatchObject({ code: "42501" });
      }
    },
  );

  it("only the server's role may verify", async () => {
    const client = await (await login({ tenantId: "team-a" })).connect();
    const sql = "SELECT * FROM oracle.verify_token(sha256('x'))";
    await expect(client.query(sql)).rejects.toMatchObject({ code: "42501" });
    await expect(db.as("worker", sql)).rejects.toMatchObject({ code: "42501" });
    expect(await db.as("server", sql)).toEqual([]);
  });
});

describe("the commands", () => {
  const cli = (...args: string[]) => runToEnd(["tenants", ...args], { env: { DATABASE_URL: db.url } });

  it("make a token, show it once, list it without its secret and revoke it", async () => {
    const made = await cli("token", "team-c", "--role", "admin", "--name", "ci");
    expect(made).toMatchObject({ code: 0, json: { tenant_id: "team-c", role: "admin", name: "ci" } });
    const token = String(made.json.token);
    expect(await verifyToken(server, token)).toMatchObject({ tenantId: "team-c", role: "admin" });
    const listed = await cli("tokens", "team-c");
    expect(listed.stdout).not.toContain(token.slice(4));
    const items = listed.json.items as { token_id: string; last_used_at: string | null }[];
    expect(items.find(({ token_id }) => token_id === made.json.token_id)?.last_used_at).not.toBeNull();
    expect(await cli("revoke", String(made.json.token_id))).toMatchObject({ code: 0 });
    expect(await verifyToken(server, token)).toBeUndefined();
    expect(await cli("revoke", `owt_${"B".repeat(43)}`)).toMatchObject({
      code: 3,
      error: { code: "TOKEN_NOT_FOUND" },
    });
    const person = await runAsPerson(["tenants", "tokens"], { env: { DATABASE_URL: db.url } });
    expect(person.stdout).toMatch(/team-c\s+admin\s+ci .*revoked/);
  });

  it("list those that open a tenant, and not another's", async () => {
    const all = await make(null);
    const other = await make("team-d");
    const ids = (await withOwner(db.oracle.db, (owner) => listTokens(owner, "team-c"))).map(
      ({ tokenId }) => tokenId,
    );
    expect(ids).toContain(all.tokenId);
    expect(ids).not.toContain(other.tokenId);
  });

  it("refuse a program's login, and name the role that is missing", async () => {
    const program = await login({ roles: ["worker", "server"] });
    const args = ["tenants", "token", "team-a", "--role", "admin"];
    const end = await runToEnd(args, { env: { DATABASE_URL: program.url } });
    expect(end).toMatchObject({ code: 2, stdout: "", error: { code: "ROLE_REFUSED" } });
    expect(end.error.message).toContain("may not act as oracle_owner");
  });
});
