import { OracleError } from "./errors.js";
import { faultOfWhole, refusal, tooLarge } from "./json-fault.js";
import { scanJson } from "./json-scan.js";
import { countMembers, hasOddEscape, surveyText } from "./json-survey.js";
import { checkValue } from "./json-value.js";
import { cutBytes, isWellFormed, toWellFormed } from "./unicode.js";

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

export interface JsonLimits {
  /** Bytes of UTF-8 the JSON text may have. */
  maxBytes: number;
  /** How many arrays and objects may lie inside each other; past 500 it has no effect. */
  maxDepth: number;
}

export const defaultJsonLimits: JsonLimits = { maxBytes: 1_048_576, maxDepth: 64 };

/** What JSON.stringify and our own recursion surely manage within Node's default stack. */
const deepestOfAll = 500;

/**
 * The JSON text of a value that Postgres can hold and give back unchanged; PayloadRejected names the path of
 * what it cannot. Like JSON.stringify it drops undefined properties and asks toJSON; nothing at all is null.
 */
export function toJsonText(value: unknown, limits = defaultJsonLimits, what = "value"): string {
  if (value === undefined) return "null";
  const text = write(value, limits, what);
  checkSize(text, limits, what);
  if (hasOddEscape(text)) {
    const fault = scanJson(text, deepestOfAll);
    if (fault) throw refusal(fault, what);
  }
  return text;
}

function write(value: unknown, limits: JsonLimits, what: string): string {
  try {
    const fault = checkValue(value, Math.min(limits.maxDepth, deepestOfAll), limits.maxBytes);
    if (fault) throw refusal(fault, what);
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof OracleError) throw error;
    // Only the value's own getters and toJSON methods throw here.
    const says = `cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`;
    throw refusal(faultOfWhole("PAYLOAD_REJECTED", says), what);
  }
}

/**
 * The value of a JSON text that came from outside: strict syntax, no key twice, no number or text that would
 * change on its way through the database.
 */
export function parseJsonText(text: string, limits = defaultJsonLimits, what = "text"): JsonValue {
  checkSize(text, limits, what);
  const maxDepth = Math.min(limits.maxDepth, deepestOfAll);
  const survey = surveyText(text, maxDepth);
  const value = survey.tooDeep ? undefined : parsed(text);
  if (
    value === undefined ||
    survey.suspect ||
    countMembers(value) !== survey.members ||
    !isWellFormed(text)
  ) {
    const fault = scanJson(text, maxDepth);
    if (fault) throw refusal(fault, what);
  }
  if (value === undefined) throw refusal(faultOfWhole("INVALID_JSON", "is not JSON"), what);
  return value;
}

/** Undefined when malformed: V8's message may lack the position, so the scan looks for it. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function checkSize(text: string, limits: JsonLimits, what: string): void {
  if (text.length * 3 <= limits.maxBytes) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxBytes) throw refusal(tooLarge(`is ${bytes} bytes of JSON`, limits.maxBytes), what);
}

/** The replacement character, as decoders put it for what is not text. */
const unreadable = "\ufffd";
const cutMark = "… [cut]";

/** A text, such as an error message, made fit for Postgres: no NUL, no half surrogate pairs, bounded. */
export function sanitizeText(text: string, maxLength = 8192): string {
  return toWellFormed(text.length > maxLength ? cut(text, maxLength) : text).replaceAll("\0", unreadable);
}

/** The same, bounded by the bytes of its UTF-8. */
export function sanitizeToBytes(text: string, maxBytes: number): string {
  const clean = sanitizeText(text, maxBytes);
  if (clean.length * 3 <= maxBytes || Buffer.byteLength(clean) <= maxBytes) return clean;
  return cutBytes(clean, maxBytes - Buffer.byteLength(cutMark)) + cutMark;
}

function cut(text: string, maxLength: number): string {
  const mark = cutMark.slice(0, maxLength);
  const end = maxLength - mark.length;
  const splitsPair = (text.codePointAt(end - 1) ?? 0) > 0xffff;
  return text.slice(0, splitsPair ? end - 1 : end) + mark;
}
