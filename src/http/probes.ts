import type { FastifyInstance } from "fastify";
import { OracleError } from "../core/errors.js";
import { checkSchema } from "../store/check-schema.js";
import type { Services } from "./call.js";

/** For whoever keeps the process alive and sends it calls: no token, nothing told but that. */
export function registerProbes(server: FastifyInstance, { db, oracle }: Services): void {
  server.get("/healthz", async (_request, reply) => reply.type("text/plain").send("ok\n"));

  server.get("/readyz", async (_request, reply) => {
    const wrong = await checkSchema(db, oracle.settings.STRICT_ROLES).then(
      () => undefined,
      (error: unknown) => (error instanceof OracleError ? error.code : "INTERNAL"),
    );
    return reply
      .code(wrong === undefined ? 200 : 503)
      .type("text/plain")
      .send(`${wrong ?? "ok"}\n`);
  });
}
