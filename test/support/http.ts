import { afterAll, beforeAll } from "vitest";
import { type HttpServer, startHttp } from "../../dist/cli/http.js";
import type { Services } from "../../dist/http/call.js";
import { type Client, createClient, type Role } from "../../dist/http/client.js";
import { createLogger } from "../../dist/observe/log.js";
import { withOwner } from "../../dist/store/owner.js";
import { createToken } from "../../dist/store/tokens.js";
import type { TestDatabase } from "./oracle.js";

/** A real server on a free port, over the file's own database. */
export function useServer(db: TestDatabase, options: Pick<Services, "crash"> = {}): TestServer {
  const server = new TestServer(db);
  beforeAll(() => server.open(options));
  afterAll(() => server.close());
  return server;
}

export class TestServer {
  url = "";
  private running: HttpServer | undefined;

  constructor(private readonly db: TestDatabase) {}

  /** A token of its own for every caller: null is every tenant. */
  async token(role: Role, tenantId: string | null = null): Promise<string> {
    const made = await this.db.oracle.withAdmin((admin) =>
      withOwner(admin, (owner) => createToken(owner, { role, tenantId })),
    );
    return made.token;
  }

  async client(role: Role, tenantId: string | null = null): Promise<Client> {
    return createClient({ baseUrl: this.url, token: await this.token(role, tenantId) });
  }

  /** A plain fetch below /api/v1. */
  fetch(path: string, init: RequestInit & { token?: string; duplex?: "half" } = {}): Promise<Response> {
    const { token, headers, ...rest } = init;
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return fetch(`${this.url}/api/v1${path}`, { ...rest, headers: { ...authorization, ...headers } });
  }

  async open(options: Pick<Services, "crash"> = {}): Promise<void> {
    this.running = await startHttp({
      oracle: this.db.oracle,
      logger: createLogger("silent"),
      address: { host: "127.0.0.1", port: 0 },
      ...options,
    });
    this.url = this.running.url;
  }

  async close(): Promise<void> {
    await this.running?.close();
  }
}
