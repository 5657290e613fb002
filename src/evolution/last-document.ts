import { defaultJsonLimits, parseJsonText } from "../core/json.js";

/** What the end of a text is: a JSON document, one that cannot be taken and why, or neither. */
export type LastDocument = { value: unknown } | { wrong: string } | undefined;

/** The JSON document that a text is, or ends with. */
export function lastDocument(text: string): LastDocument {
  const lines = text.trimEnd().split("\n").slice(-2000);
  for (let at = lines.length - 1; at >= 0; at--) {
    if (!lines[at]?.trimStart().startsWith("{")) continue;
    const document = lines.slice(at).join("\n");
    try {
      return { value: parseJsonText(document, defaultJsonLimits, "document") };
    } catch (error) {
      const wrong = whyRefused(document, error as Error);
      if (wrong !== undefined) return { wrong };
      // Only a part of it, or no JSON at all: it may begin further up.
    }
  }
  return undefined;
}

/** Undefined where it is not even nearly a document. */
function whyRefused(document: string, { message }: Error): string | undefined {
  if (isJson(document)) {
    const why = message.replace(/^The/, "the").replace(/\.$/, "");
    // A parser makes Infinity of 1e400.
    return why.includes("too large for a double") ? `${why}; ${noSuchNumber}` : why;
  }
  const holdsOdd = isJson(document.replaceAll(/-?\b(?:NaN|Infinity)\b/g, "null"));
  return holdsOdd ? `the document holds NaN or Infinity; ${noSuchNumber}` : undefined;
}

const noSuchNumber = "JSON has no such number";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
