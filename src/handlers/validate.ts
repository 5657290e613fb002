import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "../core/errors.js";

/** Runs a Standard Schema over a value. A breach names the path of its first issue. */
export async function validate(
  schema: StandardSchemaV1,
  value: unknown,
  code: "INPUT_INVALID" | "OUTPUT_INVALID",
): Promise<unknown> {
  const checked = schema["~standard"].validate(value);
  // Awaiting a value that is no promise costs a turn of the loop on every job.
  const result = checked instanceof Promise ? await checked : checked;
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
