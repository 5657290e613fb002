// Arrays as Postgres reads them. The driver would look at every character of every element, twice, which for a
// thousand jobs is a good part of a statement's cost.

/** Of values that need no quotes: ids, hashes, numbers, booleans. */
export function plainArray(values: readonly (string | number | boolean)[]): string {
  return `{${values.join(",")}}`;
}

/** Of texts that JSON.stringify wrote: in these it finds nothing to escape but what Postgres escapes alike. */
export function jsonTextArray(texts: readonly string[]): string {
  return `{${JSON.stringify(texts).slice(1, -1)}}`;
}

/** Of any texts. Most columns hold the same one many times in a row. */
export function textArray(texts: readonly (string | null | undefined)[]): string {
  let previous: string | null | undefined = null;
  let element = "NULL";
  const elements = texts.map((text) => {
    if (text !== previous) element = typeof text === "string" ? quoted(text) : "NULL";
    previous = text;
    return element;
  });
  return plainArray(elements);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
