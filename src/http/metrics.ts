import type { FastifyInstance } from "fastify";
import { databaseGauges } from "../observe/database-gauges.js";
import { serverMetrics } from "../observe/server-metrics.js";
import { countWork } from "../store/depths.js";
import type { Services } from "./call.js";
import { authenticate } from "./register.js";

/** Names of queues and how full they are concern every tenant, and tenants reach this port: a token for all is asked. */
const who = { access: "viewer", method: "GET", allTenants: true } as const;

/** `GET /metrics`, for Prometheus. */
export function registerMetrics(server: FastifyInstance, services: Services): void {
  const { db } = services;
  const own = serverMetrics(() => db.poolUse());
  const counted = databaseGauges(() => db.asEveryTenant(countWork));
  server.get(
    "/metrics",
    { onRequest: (request) => authenticate(request, services, who) },
    async (_request, reply) =>
      reply.type("text/plain; version=0.0.4; charset=utf-8").send(`${await own()}\n${await counted()}`),
  );
}
