import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { OracleError } from "../core/errors.js";

export const DEFAULT_PORT = 7317;
export const DEFAULT_HOST = "127.0.0.1";

export interface Address {
  host: string;
  /** 0: whichever is free. */
  port: number;
}

/** Starts to listen; the answer is the address for people. Beyond this machine, only where somebody can log in. */
export async function listen(
  server: FastifyInstance,
  { host, port }: Address,
  hasTokens: () => Promise<boolean>,
): Promise<string> {
  if (!isLoopback(host) && !(await hasTokens())) {
    const message = `Without a token nobody could be told apart: make one with \`oracle-worker tenants token\` before listening on ${host}, or listen on ${DEFAULT_HOST}.`;
    throw new OracleError("ADDRESS_REFUSED", message, { field: "--host" });
  }
  await server.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    throw refused(error, { host, port });
  });
  const bound = server.server.address() as { port: number };
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound.port}`;
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function refused(error: NodeJS.ErrnoException, { host, port }: Address): unknown {
  const why = {
    EADDRINUSE: "something else listens there",
    EACCES: "this account may not use that port",
    EADDRNOTAVAIL: "this machine does not have that address",
    ENOTFOUND: "that name has no address",
  }[error.code ?? ""];
  if (why === undefined) return error;
  return new OracleError("ADDRESS_REFUSED", `Cannot listen on ${host}:${port}: ${why}.`, { cause: error });
}
