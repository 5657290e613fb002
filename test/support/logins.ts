import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, inject } from "vitest";
import { grantLogin, type LoginUse } from "../../dist/store/logins.js";
import type { TestDatabase } from "./oracle.js";
import { administer } from "./server.js";

export interface TestLogin {
  name: string;
  url: string;
  /** A connection of this login, ended with the file. */
  connect(config?: pg.ClientConfig): Promise<pg.Client>;
}

/** Real logins, made as `migrate roles` makes them; roles belong to the whole server, so they go with the file. */
export function useLogins(db: TestDatabase): (use: LoginUse) => Promise<TestLogin> {
  const names: string[] = [];
  const clients: pg.Client[] = [];
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    for (const name of names) await administer(inject("adminUrl"), `DROP ROLE IF EXISTS ${name}`);
  });
  return async (use) => {
    const name = `login_${randomBytes(5).toString("hex")}`;
    names.push(name);
    const { password } = await grantLogin(db.oracle.db, name, use);
    const url = new URL(db.url);
    url.username = name;
    url.password = password ?? "";
    const connect = async (config: pg.ClientConfig = {}) => {
      const client = new pg.Client({ connectionString: url.href, ...config });
      client.on("error", () => {});
      clients.push(client);
      await client.connect();
      return client;
    };
    return { name, url: url.href, connect };
  };
}
