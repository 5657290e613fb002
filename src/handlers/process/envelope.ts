import { isUtf8 } from "node:buffer";
import { OracleError } from "../../core/errors.js";
import { type JsonValue, parseJsonText } from "../../core/json.js";
import type { BetweenTurns, HandlerMessage, ResponseEnvelope } from "../protocol.js";
import { MESSAGE_BYTES, STDOUT_BYTES } from "./caps.js";

type JsonObject = { [key: string]: JsonValue };

/** What a line of a warm child is. */
export type ChildLine =
  | { response: ResponseEnvelope }
  | { message: HandlerMessage }
  | { part: string; last: boolean }
  | BetweenTurns;

export function readLine(bytes: Buffer): ChildLine {
  const value = readObject(bytes, STDOUT_BYTES);
  if (Object.hasOwn(value, "ok")) return { response: toResponse(value) };
  if (value.leaving === true) return { leaving: true };
  if (isCount(value.ahead)) return { ahead: value.ahead };
  if (isIdList(value.returned)) return { returned: value.returned };
  if (typeof value.part === "string") return { part: value.part, last: value.last === true };
  return { message: toMessage(value) };
}

/** What parts make together. */
export function readMessage(bytes: Buffer): HandlerMessage {
  return toMessage(readObject(bytes, MESSAGE_BYTES));
}

function toMessage(value: JsonObject): HandlerMessage {
  const kind = messageKinds.find((name) => Object.hasOwn(value, name));
  if (kind === undefined) throw breach("a line that is neither an answer nor a message");
  const body = value[kind];
  if (!isObject(body) || !messageRules[kind](body)) throw breach(`a message of the wrong shape: ${kind}`);
  return value as HandlerMessage;
}

export function readResponse(bytes: Buffer): ResponseEnvelope {
  return toResponse(readObject(bytes, STDOUT_BYTES));
}

/** An answer that names an attempt must name the one that runs. */
export function checkAttempt(response: ResponseEnvelope, attemptId: string): void {
  if (response.attempt_id !== undefined && response.attempt_id !== attemptId) {
    throw breach(`the answer of another attempt, ${JSON.stringify(response.attempt_id)}`);
  }
}

export function breach(what: string): OracleError {
  return new OracleError("HANDLER_PROTOCOL", `The handler's process broke the protocol: ${what}.`);
}

export function tooMuchOutput(advice: string): OracleError {
  const message = `The handler's process wrote more than ${STDOUT_BYTES} bytes to stdout`;
  return new OracleError("OUTPUT_REJECTED", `${message}; ${advice}.`);
}

type KindOf<Message> = Message extends unknown ? keyof Message : never;
type MessageKind = KindOf<HandlerMessage>;

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isIdList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
const isGiven = <T>(value: T | undefined, rule: (value: T) => boolean) => value === undefined || rule(value);

const messageRules: Record<MessageKind, (body: JsonObject) => boolean> = {
  // What it counts is looked at where it is added up.
  usage: () => true,
  // Neither fails a job: the worker makes of a wrong type what it can.
  progress: () => true,
  log: ({ level }) => ["info", "warn", "error"].includes(level as string),
  // What a call holds is judged where it is served: the handler gets a reply that names the field.
  artifact: ({ id, json, text, base64 }) =>
    Number.isSafeInteger(id) && (json !== undefined || isText(text ?? base64)),
  step: ({ id }) => Number.isSafeInteger(id),
  effect: ({ id, outcome }) =>
    Number.isSafeInteger(id) && isGiven(outcome, (value) => outcomes.includes(value as string)),
  plan: ({ id, effects }) => Number.isSafeInteger(id) && Array.isArray(effects) && effects.every(isObject),
  commit: ({ values }) => Array.isArray(values),
};
const outcomes = ["confirmed", "failed", "in_doubt", "unknown"];

const messageKinds = Object.keys(messageRules) as MessageKind[];

function toResponse(value: JsonObject): ResponseEnvelope {
  const wrong = wrongField(value);
  if (wrong !== undefined) throw breach(`an answer of the wrong shape, at ${wrong}`);
  if (value.ok) return value as unknown as ResponseEnvelope;
  const error = { class: "Error", retryable: true, ...(value.error as JsonObject) };
  return { ...value, error } as unknown as ResponseEnvelope;
}

function wrongField(response: JsonObject): string | undefined {
  const { ok, error } = response;
  if (typeof ok !== "boolean") return "ok";
  if (ok) return wrongOf(successRules, response);
  if (!isObject(error)) return "error";
  const wrong = wrongOf(errorRules, error);
  return wrong === undefined ? wrongOf(failureRules, response) : `error.${wrong}`;
}

type Rule = (value: unknown) => boolean;
const isThere = (value: unknown) => value !== undefined;
const required = ["result", "message"];
const failureRules: Record<string, Rule> = { attempt_id: isText, usage: isObject };
const successRules: Record<string, Rule> = { result: isThere, ...failureRules, metrics: isObject };
const errorRules: Record<string, Rule> = {
  message: isText,
  class: isText,
  retryable: (value) => typeof value === "boolean",
  retry_after_seconds: (value) => typeof value === "number",
  traceback: isText,
  code: isText,
  field: isText,
};

/** The first field that breaks its rule. */
function wrongOf(rules: Record<string, Rule>, body: JsonObject): string | undefined {
  for (const name in rules) {
    if ((body[name] !== undefined || required.includes(name)) && !rules[name]?.(body[name])) return name;
  }
  return undefined;
}

function readObject(bytes: Buffer, maxBytes: number): JsonObject {
  const value = parse(bytes, maxBytes);
  if (!isObject(value)) throw breach("a document that is no object");
  return value;
}

/** Parses strictly what may become a result; error texts and messages are cleaned where they are stored. */
function parse(bytes: Buffer, maxBytes: number): JsonValue {
  const text = bytes.toString("utf8");
  try {
    if (!isUtf8(bytes)) throw rejected("The answer is not UTF-8.");
    return parseJsonText(text, { maxBytes, maxDepth: 500 }, "answer");
  } catch (error) {
    const value = parseLoosely(text);
    if (isObject(value) && Object.hasOwn(value, "ok") ? value.ok === false : value !== undefined) {
      return value as JsonValue;
    }
    const { code, message, field } = error as OracleError;
    if (value !== undefined) throw rejected(message, field);
    throw code === "INVALID_JSON" && hasOnlyOddNumbers(text)
      ? rejected("The answer holds NaN or Infinity, which are no JSON numbers; send null or a string.")
      : breach(message.replace(/\.$/, ""));
  }
}

function parseLoosely(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** Python and others write NaN unless told not to: a fault of the value, not of the protocol. */
function hasOnlyOddNumbers(text: string): boolean {
  return parseLoosely(text.replaceAll(/-?\b(?:NaN|Infinity)\b/g, "null")) !== undefined;
}

function rejected(message: string, field?: string): OracleError {
  return new OracleError("OUTPUT_REJECTED", message, field === undefined ? {} : { field });
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
