import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { z } from "zod";
import { OracleError } from "../core/errors.js";

const formats = addFormats as unknown as typeof addFormats.default;
const options = { useDefaults: true, strict: false, allErrors: false } as const;
/** Bodies are taken as they are; what stands in an address is text, so numbers and truth values are read from it. */
const bodies = formats(new Ajv2020(options));
const texts = formats(new Ajv2020({ ...options, coerceTypes: true }));

export type Check = (value: unknown) => unknown;

/** The JSON Schema that the server enforces is the one that the OpenAPI document shows. */
export function toJsonSchema(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, target: "draft-2020-12" });
  return rest;
}

/** Checks a value and fills in defaults; the error names the place. */
export function bodyCheck(schema: z.ZodType): Check {
  const validate = bodies.compile(toJsonSchema(schema, "input"));
  return (value) => run(validate, value, (path) => `$${toPath(path)}`);
}

/** The same for the query or the path. */
export function textCheck(schema: z.ZodType): Check {
  const validate = texts.compile(toJsonSchema(schema, "input"));
  // A copy that may be changed, in which `__proto__` is a name like any other.
  return (value) =>
    run(validate, Object.fromEntries(Object.entries(value as object)), (path) => path.slice(1));
}

function run(validate: ValidateFunction, value: unknown, place: (path: string) => string): unknown {
  if (validate(value)) return value;
  const error = validate.errors?.at(-1) as ErrorObject;
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>;
  const member = missingProperty ?? additionalProperty;
  const field = place(error.instancePath + (member === undefined ? "" : `/${escapePointer(member)}`));
  throw new OracleError("INVALID_ARGUMENT", `${field} ${says(error)}.`, { field });
}

function says({ keyword, message = "is not allowed", params }: ErrorObject): string {
  if (keyword === "required") return "is missing";
  if (keyword === "additionalProperties") return "is unknown here";
  if (keyword === "enum") return `must be one of ${(params.allowedValues as unknown[]).join(", ")}`;
  return message.replaceAll('"', "");
}

function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** `/items/3/name` → `.items[3].name`. */
function toPath(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join("");
}
