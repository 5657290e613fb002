import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import { version } from "../version.js";
import { type Operation, operations, streams } from "./operations.js";
import { API } from "./register.js";
import { problem } from "./schemas/common.js";
import { bulkAnswer, bulkLine } from "./schemas/jobs.js";
import { pathParams, schemas } from "./schemas.js";
import { toJsonSchema } from "./validate.js";

type Json = Record<string, unknown>;

/** The document that describes the API, made of the table of operations and of their schemas. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  const add = (name: string, operation: Operation, rest: Json) => {
    const path = operation.path.replace(/:(\w+)/g, "{$1}");
    const described = { operationId: name, summary: operation.about, ...rest, ...security(operation) };
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
  };
  for (const [name, operation] of Object.entries(operations)) {
    add(name, operation, describe(name as keyof typeof operations));
  }
  add("bulkEnqueue", streams.bulkEnqueue, {
    requestBody: {
      required: true,
      content: content("application/x-ndjson", toJsonSchema(bulkLine, "input")),
    },
    responses: responses({ 200: content("application/x-ndjson", toJsonSchema(bulkAnswer, "output")) }),
  });
  add("followJob", streams.followJob, {
    parameters: [
      ...parametersOf(streams.followJob.path),
      header("Last-Event-ID", "resumes after this event"),
    ],
    responses: responses({ 200: content("text/event-stream", { type: "string" }), 204: undefined }),
  });
  add("downloadArtifact", streams.downloadArtifact, {
    parameters: parametersOf(streams.downloadArtifact.path),
    responses: responses({ 200: content("application/octet-stream", { type: "string", format: "binary" }) }),
  });
  return {
    openapi: "3.1.0",
    info: { title: "Oracle Worker", version, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: API }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: { Problem: toJsonSchema(problem, "output") },
    },
  };
}

export function registerDocument(server: FastifyInstance): void {
  const document = openApiDocument();
  server.get(`${API}/openapi.json`, async () => document);
}

function describe(name: keyof typeof operations): Json {
  const { query, body, answer } = schemas[name] as {
    query?: z.ZodType;
    body?: z.ZodType;
    answer: z.ZodType | null;
  };
  const key = header("Idempotency-Key", "the same key and specification are the same job", 1000);
  const parameters = [
    ...parametersOf(operations[name].path),
    ...(query ? queryParameters(query) : []),
    ...(name === "enqueueJob" ? [key] : []),
  ];
  const ok = answer ? content("application/json", toJsonSchema(answer, "output")) : undefined;
  return {
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body
      ? { requestBody: { required: true, content: content("application/json", toJsonSchema(body, "input")) } }
      : {}),
    responses: responses(statusesOf(name, ok)),
  };
}

function statusesOf(name: keyof typeof operations, ok: Json | undefined): Record<number, Json | undefined> {
  if (name === "enqueueJob") return { 200: ok, 201: ok };
  if (["replayJob", "addTenant", "addToken"].includes(name)) return { 201: ok };
  return ok ? { 200: ok } : { 204: undefined };
}

function responses(good: Record<number, Json | undefined>): Json {
  const told = Object.entries(good).map(([status, body]) => [
    status,
    { description: "done", ...(body ? { content: body } : {}) },
  ]);
  const refused = {
    description: "refused; the error's code says why",
    content: content("application/problem+json", { $ref: "#/components/schemas/Problem" }),
  };
  return { ...Object.fromEntries(told), default: refused };
}

function parametersOf(path: string): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: toJsonSchema(pathParams[name as keyof typeof pathParams], "input"),
  }));
}

function queryParameters(query: z.ZodType): Json[] {
  const { properties = {} } = toJsonSchema(query, "input") as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: "query", schema }));
}

function header(name: string, description: string, maxLength = 200): Json {
  return { name, in: "header", description, schema: { type: "string", minLength: 1, maxLength } };
}

function security({ access }: Operation): Json {
  return access === "public" ? { security: [] } : { security: [{ bearer: [] }], "x-role": access };
}

function content(type: string, schema: Json): Json {
  return { [type]: { schema } };
}
