import { setTimeout as sleep } from "node:timers/promises";
import type { ArtifactStore, Bytes } from "../artifacts/store.js";
import { LeaseLost, OracleError } from "../core/errors.js";
import { canonicalJson, sha256Hex } from "../core/hash.js";
import { newId } from "../core/ids.js";
import type { Artifact, Lease } from "../core/job.js";
import { type JsonValue, sanitizeText, toJsonText } from "../core/json.js";
import { type ArtifactRef, type ArtifactSource, isStream } from "../handlers/define.js";
import { findArtifact, type NewArtifact, recordArtifact } from "../store/artifact.js";
import type { Database } from "../store/database.js";
import { isTransient } from "../store/database-errors.js";

/** JSON up to this size lies in the row. */
export const INLINE_BYTES = 8192;
/** An artifact is no payload: it may be large. */
export const jsonLimits = { maxBytes: 268_435_456, maxDepth: 500 };
/** How long the record waits for a database that does not answer; the bytes are paid for already. */
const PATIENCE_MS = 10_000;
const RETRY_MS = 250;

type About = Pick<NewArtifact, "artifactId" | "type" | "name" | "mediaType">;
interface Content {
  type: Artifact["type"];
  content: Bytes;
}
type Digest = Pick<NewArtifact, "sha256" | "size">;

const mediaTypes = {
  json: "application/json",
  text: "text/plain; charset=utf-8",
  bytes: "application/octet-stream",
} as const;

/** Keeps what handlers give: the bytes first, durable, then the row, fenced. */
export class ArtifactKeeper {
  constructor(
    private readonly db: Database,
    private readonly store: ArtifactStore,
  ) {}

  async keep(lease: Lease, name: string, source: ArtifactSource, mediaType?: string): Promise<ArtifactRef> {
    return this.keepContent(lease, name, read(source), mediaType);
  }

  /** Keeps a value as JSON, also where it is a text: `readJson` gives back the same. */
  keepJson(lease: Lease, name: string, value: JsonValue): Promise<ArtifactRef> {
    return this.keepContent(lease, name, asJson(value));
  }

  private async keepContent(
    lease: Lease,
    name: string,
    { type, content }: Content,
    mediaType?: string,
  ): Promise<ArtifactRef> {
    const about = {
      artifactId: newId(),
      type,
      name: checkName(name),
      mediaType: checkMediaType(mediaType ?? mediaTypes[type]),
    };
    const kept =
      content instanceof Uint8Array
        ? await this.keepBytes(lease, about, content)
        : await this.keepStream(lease, about, content);
    return { artifact_id: about.artifactId, ...kept };
  }

  /** The value that `keepJson` kept. */
  async readJson(artifactId: string): Promise<JsonValue> {
    const found = await patiently(() => findArtifact(this.db, artifactId));
    if (!found) throw new OracleError("ARTIFACT_NOT_FOUND", `There is no artifact ${artifactId} any more.`);
    if ("payload" in found.place) return found.place.payload;
    const chunks: Buffer[] = [];
    for await (const chunk of await this.store.get(found.place.reference)) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as JsonValue;
  }

  private async keepBytes(lease: Lease, about: About, bytes: Uint8Array): Promise<Digest> {
    const digest = { sha256: sha256Hex(bytes), size: bytes.byteLength };
    const inline = about.type === "json" && bytes.byteLength <= INLINE_BYTES;
    const payload = inline ? { payload: Buffer.from(bytes).toString("utf8") } : {};
    // Without a payload it shares the bytes of a twin, if the tenant has one.
    if (await this.record(lease, { ...about, ...digest, ...payload })) return digest;
    const { reference } = await this.store.put(lease.tenantId, bytes);
    await this.record(lease, { ...about, ...digest, reference });
    return digest;
  }

  /** The digest of a stream is known when its bytes are stored: a twin found then makes them superfluous. */
  private async keepStream(lease: Lease, about: About, stream: AsyncIterable<Uint8Array>): Promise<Digest> {
    const { reference, ...digest } = await this.store.put(lease.tenantId, stream);
    const shared = await this.record(lease, { ...about, ...digest });
    // What stays behind here is collected later.
    if (shared) await this.store.remove(reference).catch(() => {});
    else await this.record(lease, { ...about, ...digest, reference });
    return digest;
  }

  /** False: there are no bytes to share. */
  private async record(lease: Lease, artifact: NewArtifact): Promise<boolean> {
    const became = await patiently(() => recordArtifact(this.db, lease, artifact));
    if (became === "lost") throw new LeaseLost(lease.jobId, "its attempt can keep no more artifacts");
    return became === "recorded";
  }
}

function read(source: ArtifactSource): Content {
  if (source instanceof Uint8Array || isStream(source)) return { type: "bytes", content: source };
  if (typeof source === "string") return { type: "text", content: Buffer.from(source, "utf8") };
  return asJson(source);
}

function asJson(value: unknown): Content {
  // Checked as Postgres would have it, kept in the one form that every language prints alike.
  toJsonText(value, jsonLimits, "artifact");
  return { type: "json", content: Buffer.from(canonicalJson(value as JsonValue), "utf8") };
}

function checkName(name: unknown): string {
  if (typeof name === "string" && name.length >= 1 && name.length <= 200) return sanitizeText(name);
  throw wrong("name", name, "a text of 1 to 200 characters");
}

/** It becomes a header on its way to a browser. */
function checkMediaType(mediaType: unknown): string {
  if (typeof mediaType === "string" && /^[\w.+-]+\/[\w.+-]+(?: *; *[\w.+-]+=[\w.+-]+)*$/.test(mediaType)) {
    if (mediaType.length <= 200) return mediaType;
  }
  throw wrong("mediaType", mediaType, "a media type such as text/csv");
}

function wrong(field: string, given: unknown, right: string): OracleError {
  const shown = JSON.stringify(sanitizeText(String(given), 100));
  return new OracleError("INVALID_ARGUMENT", `artifact: ${field} is ${shown}; it must be ${right}.`, {
    field,
  });
}

async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const endsAt = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error) || performance.now() > endsAt) throw error;
      await sleep(RETRY_MS);
    }
  }
}
