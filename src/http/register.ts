import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { OracleError } from "../core/errors.js";
import { requireJob } from "../store/read.js";
import { checkAccess, type Identity, tenantOf } from "./auth.js";
import type { Call, Handler, Handlers, Services } from "./call.js";
import { checkSameOrigin, tokenOf, type Via } from "./credentials.js";
import { type Operation, type OperationName, operations } from "./operations.js";
import { pathParams, schemas } from "./schemas.js";
import { bodyCheck, type Check, textCheck } from "./validate.js";

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller | null;
  }
}

export interface Caller {
  identity: Identity;
  via: Via;
}

export const API = "/api/v1";

/** Registers every operation of the table: who may call it, what goes in, what it does. */
export function registerOperations(server: FastifyInstance, services: Services, handlers: Handlers): void {
  for (const name of Object.keys(operations) as OperationName[]) {
    const operation: Operation = operations[name];
    const checks = checksOf(name);
    const handler = handlers[name] as Handler<OperationName>;
    server.route({
      method: operation.method,
      url: API + operation.path,
      onRequest: (request) => authenticate(request, services, operation),
      handler: async (request, reply) => {
        const call = { ...toCall(request, services, checks), request, reply } as unknown;
        const answer = await handler(call as Call<OperationName>);
        return answer === undefined ? reply.code(204).send() : reply.send(answer);
      },
    });
  }
}

/** Before the body is read: who calls, and whether they may. */
export async function authenticate(
  request: FastifyRequest,
  services: Services,
  { access, method, allTenants }: Pick<Operation, "access" | "method" | "allTenants">,
): Promise<void> {
  const changes = method !== "GET";
  if (access === "public") {
    if (changes && (request.headers.origin ?? request.headers["sec-fetch-site"])) checkSameOrigin(request);
    return;
  }
  const given = tokenOf(request);
  const identity = given && (await services.authenticator.identify(given.token));
  if (!given || !identity) {
    throw new OracleError("UNAUTHENTICATED", "Send a valid token as `Authorization: Bearer …`, or log in.");
  }
  if (given.via === "cookie" && changes) checkSameOrigin(request);
  checkAccess(identity, access, allTenants === true);
  request.caller = { identity, via: given.via };
}

interface Checks {
  params: Check;
  query: Check;
  body: Check;
}

const nothing = z.strictObject({});

function checksOf(name: OperationName): Checks {
  const { query, body } = schemas[name] as { query?: z.ZodType; body?: z.ZodType };
  return {
    params: paramsCheck(operations[name].path),
    query: textCheck(query ?? nothing),
    body: body ? bodyCheck(body) : refuseBody,
  };
}

export function paramsCheck(path: string): Check {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as keyof typeof pathParams);
  return textCheck(z.strictObject(Object.fromEntries(names.map((name) => [name, pathParams[name]]))));
}

/** A call without a body may carry an empty one. */
function refuseBody(value: unknown): undefined {
  const empty =
    value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
  if (!empty) throw new OracleError("INVALID_ARGUMENT", "This call takes no body.", { field: "$" });
}

function toCall(request: FastifyRequest, services: Services, checks: Checks) {
  const params = checks.params(request.params);
  const query = checks.query(request.query) as { tenant?: string };
  const body = checks.body(request.body);
  return { params, query, body, ...scopeOf(request, services, query.tenant) };
}

/** What the caller may see, as a way into the database. */
export function scopeOf(request: FastifyRequest, services: Services, named: string | undefined) {
  // A public call has nobody's rows to see.
  const { identity, via } = request.caller ?? {
    identity: { role: "viewer", tenantId: "" } as const,
    via: "bearer",
  };
  const tenant = tenantOf(identity, named);
  const { db } = services;
  const within: Call<OperationName>["within"] = (work) =>
    tenant === undefined ? db.asEveryTenant(work) : db.asTenant(tenant, work);
  // Looked at first, so that another tenant's job is missing here as everywhere.
  const acting: Call<OperationName>["acting"] = async (jobId, work) => {
    const job = await within((own) => requireJob(own, jobId));
    return db.asTenant(job.tenantId, work);
  };
  return { identity, via, tenant, within, acting };
}
