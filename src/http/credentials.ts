import type { FastifyReply, FastifyRequest } from "fastify";
import { OracleError } from "../core/errors.js";

export type Via = "bearer" | "cookie";

/** Where a call carries its token: a header, or the cookie of a browser that has logged in. */
export function tokenOf(request: FastifyRequest): { token: string; via: Via } | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
  if (bearer !== undefined) return { token: bearer, via: "bearer" };
  const token = readCookie(request, cookieName(request));
  return token === undefined ? undefined : { token, via: "cookie" };
}

/**
 * A browser sends the cookie with whatever page asks it to, so a change that comes by cookie must come from our own
 * pages. SameSite=Strict says the same; this holds where another service on the same host is the attacker.
 */
export function checkSameOrigin(request: FastifyRequest): void {
  const site = request.headers["sec-fetch-site"];
  const { origin, host } = request.headers;
  const same = site === undefined ? origin !== undefined && hostOf(origin) === host : site === "same-origin";
  if (!same)
    throw new OracleError("FORBIDDEN", "A change by cookie must come from the dashboard's own pages.");
}

export function setCookie(request: FastifyRequest, reply: FastifyReply, token: string | undefined): void {
  const parts = [
    `${cookieName(request)}=${token ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    ...(token === undefined ? ["Max-Age=0"] : []),
    ...(request.protocol === "https" ? ["Secure"] : []),
  ];
  reply.header("set-cookie", parts.join("; "));
}

/** Cookies know no ports: without it, two servers on one host would log each other out. */
function cookieName(request: FastifyRequest): string {
  return `oracle_worker_${request.socket.localPort ?? 0}`;
}

function readCookie(request: FastifyRequest, name: string): string | undefined {
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const [key, value] = part.trim().split("=", 2);
    if (key === name && value) return value;
  }
  return undefined;
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
