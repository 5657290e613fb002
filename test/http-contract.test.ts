import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { openApiDocument } from "../dist/http/openapi.js";
import { useServer } from "./support/http.js";
import { echo, flaky } from "./support/jobs.js";
import { useTestDatabase } from "./support/oracle.js";

// Every operation of the OpenAPI document is called with what its schemas allow and with what they do not. Whatever
// comes in, the answer is never a fault of the server, and it is what the document says.

const db = useTestDatabase();
const server = useServer(db);

type Schema = Record<string, unknown>;
interface Described {
  operationId: string;
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}
interface Target extends Described {
  method: string;
  path: string;
}

const document = openApiDocument() as {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: { Problem: Schema } };
};
const streams = ["bulkEnqueue", "followJob", "downloadArtifact"];
const targets: Target[] = Object.entries(document.paths)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ ...described, method, path })),
  )
  .filter(({ operationId }) => !streams.includes(operationId));

const ajv = (addFormats as unknown as typeof addFormats.default)(
  new Ajv2020({ strict: false, allErrors: true }),
);
const isProblem = ajv.compile(document.components.schemas.Problem);

let token = "";
/** Ids of things that are there, so that not every call ends at "there is no such job". */
const known: Record<string, string[]> = {
  id: [],
  queue: ["default", "contract"],
  tenant: ["default", "t1"],
  token: [],
};

beforeAll(async () => {
  token = await server.token("admin");
  const worker = await db.worker({ jobs: [echo, flaky], queues: ["contract"] });
  const ids = await Promise.all([
    db.oracle.enqueue("echo", { n: 1 }, { queue: "contract" }),
    db.oracle.enqueue("echo", { n: 2 }, { queue: "contract", tenant: "t1" }),
    db.oracle.enqueue("flaky", { failures: 9, how: "terminal" }, { queue: "contract" }),
    db.oracle.enqueue("nobody", {}, { key: "k" }),
    db.oracle.enqueue("later", {}, { runAfter: 3600 }),
  ]);
  await worker.drained();
  known.id = ids.map(({ id }) => id);
});

const odd = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    "\0",
    "%00",
    "../..",
    "' OR 1=1 --",
    "<script>",
    "__proto__",
    "constructor",
    "null",
    "1e400",
    "-1",
  ),
  fc.integer().map(String),
);

/** Something a schema allows, mostly. */
function valid(schema: Schema): fc.Arbitrary<unknown> {
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map((one) => valid(one as Schema)));
  switch (schema.type) {
    case "string":
      return text(schema);
    case "integer":
      return fc.integer({ min: Number(schema.minimum ?? -9e15), max: Number(schema.maximum ?? 9e15) });
    case "number":
      return fc.double({
        min: Number(schema.minimum ?? -1e9),
        max: Number(schema.maximum ?? 1e9),
        noNaN: true,
      });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(valid(schema.items as Schema), {
        minLength: Number(schema.minItems ?? 0),
        maxLength: 3,
      });
    case "object":
      return object(schema);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function text({ format, pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === "date-time") {
    const [min, max] = [new Date("1970-01-01"), new Date("2100-01-01")];
    return fc.date({ min, max, noInvalidDate: true }).map((date) => date.toISOString());
  }
  if (String(pattern).includes("[0-9a-f]{64}")) return fc.constant("0".repeat(64));
  if (String(pattern).includes("[0-9a-fA-F]{8}"))
    return fc.oneof(fc.uuid(), fc.constantFrom(...(known.id as string[])));
  const size = { minLength: Number(minLength), maxLength: Math.min(40, Number(maxLength)) };
  return fc.string({ unit: "grapheme", ...size });
}

function object({ properties = {}, required = [] as string[] }: Schema): fc.Arbitrary<unknown> {
  const members = Object.entries(properties as Record<string, Schema>).map(
    ([name, member]): [string, fc.Arbitrary<unknown>] => [name, valid(member)],
  );
  return fc.record(Object.fromEntries(members), { requiredKeys: required as string[] });
}

/** Anything at all where a value is expected. */
const hostile = (schema: Schema): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 2, arbitrary: valid(schema) },
    { weight: 1, arbitrary: odd },
    { weight: 1, arbitrary: fc.jsonValue() },
  );

function hostileBody(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.type !== "object") return hostile(schema);
  const members = Object.entries(schema.properties as Record<string, Schema>).map(([name, one]) => [
    name,
    hostile(one),
  ]);
  return fc.oneof(fc.record(Object.fromEntries(members), { requiredKeys: [] }), fc.jsonValue());
}

interface Request {
  path: string;
  headers: Record<string, string>;
  body: unknown;
}

function requests(target: Target, wild: boolean): fc.Arbitrary<Request> {
  const parameters = target.parameters ?? [];
  const value = (schema: Schema) => (wild ? hostile(schema) : valid(schema));
  const given = (place: string) =>
    fc.record(
      Object.fromEntries(
        parameters
          .filter((parameter) => parameter.in === place)
          .map(({ name, schema }) => [
            name,
            fc.oneof(...[value(schema), ...(known[name]?.length ? [fc.constantFrom(...known[name])] : [])]),
          ]),
      ),
      { requiredKeys: place === "path" ? parameters.filter((p) => p.in === "path").map((p) => p.name) : [] },
    ) as fc.Arbitrary<Record<string, unknown>>;
  const schema = target.requestBody?.content["application/json"]?.schema;
  const body = schema ? (wild ? hostileBody(schema) : valid(schema)) : fc.constant(undefined);
  const extra = wild ? fc.option(fc.tuple(odd, odd), { nil: undefined, freq: 4 }) : fc.constant(undefined);
  return fc
    .tuple(given("path"), given("query"), given("header"), body, extra)
    .map(([path, query, header, sent, more]) => {
      const search = new URLSearchParams(
        Object.entries(query).map(([name, one]): [string, string] => [name, asText(one)]),
      );
      if (more) search.append(more[0], more[1]);
      const filled = target.path.replace(/\{(\w+)\}/g, (_, name) =>
        encodeURIComponent(wellFormed(path[name])),
      );
      return { path: `${filled}?${search}`, headers: headersOf(header), body: sent };
    });
}

const asText = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
const wellFormed = (value: unknown) => asText(value).toWellFormed();

/** What cannot stand in a header at all is not the server's business. */
function headersOf(given: Record<string, unknown>): Record<string, string> {
  const fit = Object.entries(given).filter(([, value]) => /^[\x21-\x7e][\x20-\x7e]*$/.test(asText(value)));
  return Object.fromEntries(fit.map(([name, value]) => [name, asText(value).trim()]));
}

async function send(target: Target, { path, headers, body }: Request) {
  const response = await server.fetch(path, {
    method: target.method.toUpperCase(),
    token,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
}

function checkAnswer(target: Target, { status, type, text }: Awaited<ReturnType<typeof send>>): void {
  expect(status, text).toBeLessThan(500);
  if (status >= 400) {
    expect(type).toMatch(/^application\/problem\+json/);
    expect(isProblem(JSON.parse(text)), text).toBe(true);
    return;
  }
  const described = target.responses[status];
  expect(described, `${status} is not described`).toBeDefined();
  const schema = described?.content?.["application/json"]?.schema;
  if (!schema) {
    expect(text).toBe("");
    return;
  }
  const validate = ajv.compile(schema);
  expect(validate(JSON.parse(text)), `${JSON.stringify(validate.errors)} in ${text}`).toBe(true);
}

describe.each(targets)("$operationId", (target) => {
  // What it makes or ends must not get in the way of the others.
  const runs = ["addToken", "revokeToken", "logIn", "logOut"].includes(target.operationId) ? 10 : 40;

  it("answers what its schemas allow as the document says", async () => {
    await fc.assert(
      fc.asyncProperty(requests(target, false), async (request) =>
        checkAnswer(target, await send(target, request)),
      ),
      { numRuns: runs },
    );
  });

  it("refuses what they do not allow, and never breaks", async () => {
    await fc.assert(
      fc.asyncProperty(requests(target, true), async (request) =>
        checkAnswer(target, await send(target, request)),
      ),
      { numRuns: runs },
    );
  });
});
