import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "../core/errors.js";

type Breach = "INPUT_INVALID" | "OUTPUT_INVALID";

/**
 * Runs a Standard Schema over a value; a breach names the path of its first issue. A promise only where the schema
 * gives one: most do not, and to wait for them would be a good part of a short job.
 */
export function validate(schema: StandardSchemaV1, value: unknown, code: Breach): unknown | Promise<unknown> {
  const checked = schema["~standard"].validate(value);
  return checked instanceof Promise ? checked.then((result) => judge(result, code)) : judge(checked, code);
}

function judge(result: StandardSchemaV1.Result<unknown>, code: Breach): unknown {
  if (!result.issues) return result.value;
  const what = code === "INPUT_INVALID" ? "input" : "output";
  const issues = result.issues.slice(0, 5).map((issue) => `${pathOf(issue)}: ${issue.message}`);
  throw new OracleError(code, `The ${what} breaks its schema: ${issues.join("; ")}.`, {
    field: result.issues[0] ? pathOf(result.issues[0]) : "$",
  });
}

function pathOf(issue: StandardSchemaV1.Issue): string {
  const keys = (issue.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
  return keys.reduce<string>(
    (path, key) => (typeof key === "number" ? `${path}[${key}]` : `${path}.${String(key)}`),
    "$",
  );
}
