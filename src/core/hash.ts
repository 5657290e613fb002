import { hash } from "node:crypto";
import type { JsonValue } from "./json.js";

/**
 * The RFC 8785 text of a JSON value: the same in every language, and in SQL (canonical_json in db/migrations).
 * A value that passed toJsonText gives the canonical form of that text, toJSON and all. Written here because
 * every input and result is hashed: the `canonicalize` package takes more than twice as long, and the tests
 * hold the two equal.
 */
export function canonicalJson(value: JsonValue): string {
  return canonical(value ?? null);
}

function canonical(value: JsonValue): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object" || value === null) return String(value);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== "function") return container(value);
  const converted = toJSON.call(value) as JsonValue;
  return typeof converted === "object" && converted !== null ? container(converted) : canonical(converted);
}

function container(value: JsonValue[] | { [key: string]: JsonValue }): string {
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === "" ? "" : ","}${canonical(item)}`;
    return `[${text}]`;
  }
  for (const key of sorted(Object.keys(value))) {
    const member = value[key];
    if (member !== undefined) text += `${text === "" ? "" : ","}${quoted(key)}:${canonical(member)}`;
  }
  return `{${text}}`;
}

/** By UTF-16 code units, as RFC 8785 wants and as JavaScript compares. */
function sorted(keys: string[]): string[] {
  return keys.length <= FEW_KEYS ? insertionSorted(keys) : keys.sort();
}

/** Most objects have few keys, many in order: `sort` would allocate more for them than the rest of their text. */
function insertionSorted(keys: string[]): string[] {
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] as string;
    let at = index;
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string;
    keys[at] = key;
  }
  return keys;
}

/** Up to so many keys are sorted where they are. */
const FEW_KEYS = 16;
const needsEscape = /["\\\p{Cc}\p{Cs}]/u;

/** JSON.stringify of a short text costs more than looking whether there is anything to escape. */
function quoted(text: string): string {
  return text.length < 64 && !needsEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}

export function sha256Hex(content: string | Uint8Array): string {
  return hash("sha256", content, "hex");
}

/** The hash of a result or any other JSON value. */
export function contentHash(value: JsonValue): string {
  return sha256Hex(canonicalJson(value));
}

export interface JobSpec {
  jobType: string;
  input: JsonValue;
  /** Only for jobs pinned to one version of their handler. */
  handlerVersion?: string | null | undefined;
}

/** What makes two submissions the same work; SQL computes the same in spec_hash. */
export function specHash({ jobType, input, handlerVersion }: JobSpec): string {
  const version = canonical(handlerVersion ?? null);
  return sha256Hex(
    `{"handler_version":${version},"input":${canonicalJson(input)},"job_type":${quoted(jobType)},"v":1}`,
  );
}
