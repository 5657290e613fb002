import type { StandardSchemaV1 } from "@standard-schema/spec";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";

/** A JSON Schema (draft 2020-12) as a Standard Schema: it checks and changes nothing. Throws if it is none. */
export function fromJsonSchema(schema: object | boolean): StandardSchemaV1 {
  // A misspelt keyword would accept everything, so unknown ones are refused; "x-…" is free for anybody's notes.
  const ajv = new Ajv2020({ strict: false, strictSchema: true });
  formats.default(ajv);
  ajv.addVocabulary(["discriminator", ...ownKeywords(schema)]);
  const check = ajv.compile(schema);
  if ("$async" in check) throw new Error("$async is not for what is checked at once");
  return {
    "~standard": {
      version: 1,
      vendor: "json-schema",
      validate: (value) =>
        check(value) ? { value } : { issues: (check.errors ?? []).map((error) => toIssue(error, value)) },
    },
  };
}

/** Accepts whatever is JSON. */
export const anything: StandardSchemaV1 = {
  "~standard": { version: 1, vendor: "json-schema", validate: (value) => ({ value }) },
};

function ownKeywords(schema: object | boolean): string[] {
  const found = new Set<string>();
  JSON.stringify(schema, (key, value) => {
    if (key.startsWith("x-")) found.add(key);
    return value;
  });
  return [...found];
}

function toIssue(error: ErrorObject, root: unknown): StandardSchemaV1.Issue {
  const path: (string | number)[] = [];
  let value = root;
  for (const part of error.instancePath.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(value) ? Number(key) : key);
    value = (value as Record<string, unknown>)[key];
  }
  return { path, message: sentence(error) };
}

/** The library's message leaves out what was found or allowed. */
function sentence({ message = "is wrong", params }: ErrorObject): string {
  const detail =
    params.allowedValues ?? params.allowedValue ?? params.additionalProperty ?? params.unevaluatedProperty;
  return detail === undefined ? message : `${message}: ${JSON.stringify(detail)}`;
}
