import type { Readable } from "node:stream";
import { OracleError } from "../core/errors.js";
import { type JsonLimits, type JsonValue, parseJsonText } from "../core/json.js";

/** A body trickling in for longer is somebody holding a connection. */
const BODY_TIMEOUT_MS = 60_000;

/** The whole of a JSON body, read strictly: nothing that would change on its way through the database. */
export async function readJsonBody(stream: Readable, limits: JsonLimits): Promise<JsonValue> {
  const bytes = await collect(stream, limits.maxBytes);
  return parseJsonText(decodeUtf8(bytes), limits, "body");
}

async function collect(stream: Readable, maxBytes: number): Promise<Buffer> {
  const timer = setTimeout(() => stream.destroy(tooSlow()), BODY_TIMEOUT_MS);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) throw bodyTooLarge(maxBytes);
      chunks.push(chunk);
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks, size);
}

export function bodyTooLarge(maxBytes: number): OracleError {
  return new OracleError("PAYLOAD_TOO_LARGE", `The body is larger than ${maxBytes} bytes.`, {
    field: "body",
  });
}

function tooSlow(): OracleError {
  return new OracleError("INVALID_ARGUMENT", `The body did not arrive within ${BODY_TIMEOUT_MS / 1000} s.`);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Decoded loosely, wrong bytes would become replacement characters without a word. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new OracleError("INVALID_JSON", "The text is not UTF-8.", { field: "$" });
  }
}
