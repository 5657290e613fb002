import { constants, createReadStream } from "node:fs";
import { access } from "node:fs/promises";
import { type OracleError, PayloadRejected } from "../core/errors.js";
import { type JsonLimits, type JsonValue, parseJsonText } from "../core/json.js";
import type { Settings } from "../core/settings.js";
import { wrongValue } from "./errors.js";

export function payloadLimits(settings: Settings): JsonLimits {
  return { maxBytes: settings.MAX_PAYLOAD_BYTES, maxDepth: settings.MAX_PAYLOAD_DEPTH };
}

/** The JSON that `--input` gives as text, as `@FILE`, or as `-` for standard input. */
export async function readInput(given: string, settings: Settings): Promise<JsonValue> {
  const limits = payloadLimits(settings);
  return parseJsonText((await readText(given, limits.maxBytes)).trim(), limits, "input");
}

async function readText(given: string, maxBytes: number): Promise<string> {
  if (given !== "-" && !given.startsWith("@")) return given;
  const source = given === "-" ? process.stdin : openSource("--input", given.slice(1));
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    // White space around the JSON may pass the limit a little; an endless file may not be read to its end.
    if (bytes > 2 * maxBytes) {
      throw new PayloadRejected("PAYLOAD_TOO_LARGE", "$", `The input is larger than ${maxBytes} bytes.`);
    }
  }
  return decodeUtf8(Buffer.concat(chunks), "The input");
}

/** Finds out before anything else is started for it. */
export async function requireFile(flag: string, path: string): Promise<void> {
  await access(path, constants.R_OK).catch((error: Error) => {
    throw unreadable(flag, path, error);
  });
}

function unreadable(flag: string, path: string, error: unknown): OracleError {
  return wrongValue(flag, path, `a file that can be read (${(error as Error).message})`);
}

/** A file's bytes; what keeps it from being read is told under the flag's name. */
export async function* openSource(flag: string, path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>;
  } catch (error) {
    throw unreadable(flag, path, error);
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Refuses bytes that are not UTF-8 where a decoder would put U+FFFD in their place. */
export function decodeUtf8(bytes: Buffer, what: string): string {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw new PayloadRejected("INVALID_JSON", "$", `${what} is not UTF-8 text.`);
  }
}
