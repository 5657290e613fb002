import { sanitizeText } from "./json.js";
import { errorFields, MARK, redactText } from "./redact.js";
import { isSecretName } from "./secrets.js";
import { cutBytes } from "./unicode.js";

const DEEPEST = 16;

interface Copy {
  /** Characters that are still worth copying: the text is cut anyway. */
  left: number;
  /** The containers around the value at hand: one of them again is a circle. */
  open: Set<object>;
  /** Secrets to hide besides those that are known or look like one. */
  also: readonly string[];
}

/**
 * JSON text of whatever was given, at most `maxBytes` of it: secrets are hidden, what JSON or Postgres cannot hold is
 * replaced, and of what is too long the beginning is kept, as text. For logs, where a value that cannot be kept as it
 * is must not be a fault. Never throws.
 */
export function toLooseJsonText(value: unknown, maxBytes: number, also: readonly string[] = []): string {
  const text = JSON.stringify(copy(value, 0, { left: maxBytes, open: new Set(), also }));
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // Inside a text each character of JSON takes two bytes at most: its quotes and backslashes are escaped again.
  return JSON.stringify({ cut: cutBytes(text, Math.floor(maxBytes / 2) - 10) });
}

function copy(value: unknown, depth: number, walk: Copy): unknown {
  walk.left--;
  switch (typeof value) {
    case "string":
      walk.left -= value.length;
      // Hidden before it is cut: half a secret is not recognised.
      return sanitizeText(redactText(value, walk.also));
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "object":
      return value === null ? null : copyObject(value, depth, walk);
    case "bigint":
    case "symbol":
      return sanitizeText(String(value));
    case "function":
      return "[function]";
    default:
      return value ?? null;
  }
}

function copyObject(value: object, depth: number, walk: Copy): unknown {
  if (walk.open.has(value)) return "[circular]";
  if (depth >= DEEPEST) return "[too deep]";
  walk.open.add(value);
  try {
    const plain = toPlain(value);
    if (typeof plain !== "object" || plain === null) return copy(plain, depth, walk);
    return Array.isArray(plain) ? copyItems(plain, depth, walk) : copyMembers(plain, depth, walk);
  } catch {
    // A getter or a toJSON of the value's own.
    return "[unreadable]";
  } finally {
    walk.open.delete(value);
  }
}

/** Objects that JSON would show as {}. */
function toPlain(value: object): unknown {
  if (value instanceof Error) return errorFields(value);
  if (value instanceof Map || value instanceof Set) return [...value];
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  const { toJSON } = value as { toJSON?: unknown };
  return typeof toJSON === "function" ? toJSON.call(value) : value;
}

function copyItems(items: unknown[], depth: number, walk: Copy): unknown[] {
  const copied: unknown[] = [];
  for (const item of items) {
    if (walk.left <= 0) break;
    copied.push(copy(item, depth + 1, walk));
  }
  return copied;
}

function copyMembers(value: object, depth: number, walk: Copy): object {
  const copied: [string, unknown][] = [];
  for (const key of Object.keys(value)) {
    if (walk.left <= 0) break;
    walk.left -= key.length;
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    const hidden = member !== null && isSecretName(key);
    copied.push([sanitizeText(key), hidden ? MARK : copy(member, depth + 1, walk)]);
  }
  // Defined, not assigned: a key may be __proto__.
  return Object.fromEntries(copied);
}
