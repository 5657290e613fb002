import type { FastifyInstance } from "fastify";

/** Our own files only: no inline scripts or styles, no frames, no forms to anywhere. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** On every answer, whatever it is. */
export function setSecurityHeaders(server: FastifyInstance): void {
  server.addHook("onRequest", async (_request, reply) => {
    reply.headers({
      "content-security-policy": contentPolicy,
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "cross-origin-opener-policy": "same-origin",
      "cache-control": "no-store",
    });
  });
}
