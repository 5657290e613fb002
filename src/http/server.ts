import type { IncomingMessage } from "node:http";
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { Logger } from "../observe/log.js";
import { registerBulk } from "./bulk.js";
import type { Services } from "./call.js";
import { registerDownload } from "./download.js";
import { registerEvents } from "./events.js";
import { registerMetrics } from "./metrics.js";
import { registerDocument } from "./openapi.js";
import { registerProbes } from "./probes.js";
import { isOurFault, sendProblem } from "./problem.js";
import { bodyTooLarge, readJsonBody } from "./read-body.js";
import { registerOperations } from "./register.js";
import { routes } from "./routes/index.js";
import { setSecurityHeaders } from "./security-headers.js";
import { registerDashboard } from "./web.js";

/** What an envelope may add to an input: names, key, options. */
const ENVELOPE_BYTES = 65_536;
/** A refused body that is larger than this is not waited for: the connection is closed instead. */
const DRAIN_BYTES = 65_536;

/** The API and the dashboard, not yet listening. */
export async function createServer(services: Services, logger: Logger): Promise<FastifyInstance> {
  const { settings } = services.oracle;
  const limits = {
    maxBytes: settings.MAX_PAYLOAD_BYTES + ENVELOPE_BYTES,
    // The input lies inside the envelope.
    maxDepth: settings.MAX_PAYLOAD_DEPTH + 1,
  };
  const server = fastify({
    bodyLimit: limits.maxBytes,
    exposeHeadRoutes: false,
    // Bodies have a time limit of their own; a bulk enqueue may stream for hours.
    requestTimeout: 0,
    routerOptions: { maxParamLength: 1000 },
  });
  server.decorateRequest("caller", null);
  setSecurityHeaders(server);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", async (request: FastifyRequest, body: IncomingMessage) => {
    if (Number(request.headers["content-length"] ?? 0) > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
    return readJsonBody(body, limits);
  });
  server.setErrorHandler((error, request, reply) => {
    if (isOurFault(error))
      logger.error({ err: error, method: request.method, url: request.url }, "a call failed");
    const length = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
    if (!request.raw.complete && length > DRAIN_BYTES) reply.header("connection", "close");
    return sendProblem(reply, error);
  });
  registerProbes(server, services);
  registerMetrics(server, services);
  registerOperations(server, services, routes(services));
  registerBulk(server, services, limits);
  registerEvents(server, services);
  registerDownload(server, services);
  registerDocument(server);
  await registerDashboard(server);
  return server;
}
