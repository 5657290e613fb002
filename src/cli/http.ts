import { type Authenticator, TokenAuthenticator } from "../http/auth.js";
import type { Services } from "../http/call.js";
import { type Address, listen } from "../http/listen.js";
import { createServer } from "../http/server.js";
import type { Logger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import { hasTokens, verifyToken } from "../store/tokens.js";

export interface HttpOptions {
  oracle: Oracle;
  logger: Logger;
  address: Address;
  /** Around the tokens of the database. */
  authenticator?: (tokens: Authenticator) => Authenticator;
  crash?: Services["crash"];
}

export interface HttpServer {
  url: string;
  close(): Promise<void>;
}

/** Connections that answer calls; each is held for one transaction. */
const CONNECTIONS = 10;
const CLOSE_GRACE_MS = 5_000;

/** The API and the dashboard for `serve` and `dev`. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { oracle, logger, address, crash } = options;
  const db = oracle.db.with({ role: "server", pinPlans: true, maxConnections: CONNECTIONS });
  const tokens = new TokenAuthenticator((token) => verifyToken(db, token));
  const authenticator = options.authenticator?.(tokens) ?? tokens;
  const server = await createServer({ oracle, db, authenticator, crash }, logger);
  const close = async () => {
    // Calls under way are finished; a stream without end is not waited for.
    const late = setTimeout(() => server.server.closeAllConnections(), CLOSE_GRACE_MS);
    await server.close();
    clearTimeout(late);
    await db.close();
  };
  try {
    return { url: await listen(server, address, () => hasTokens(db)), close };
  } catch (error) {
    await close();
    throw error;
  }
}
