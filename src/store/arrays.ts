/**
 * An array as Postgres reads it, of values that need no quotes: ids, numbers, booleans. The driver would look at
 * every character of every element, which for a thousand jobs is a good part of a statement's cost.
 */
export function plainArray(values: readonly (string | number | boolean)[]): string {
  return `{${values.join(",")}}`;
}
