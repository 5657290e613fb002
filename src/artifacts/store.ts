import { createHash } from "node:crypto";
import { pipeline, type Readable, Transform } from "node:stream";
import { OracleError } from "../core/errors.js";
import { sha256Hex } from "../core/hash.js";
import { newId } from "../core/ids.js";

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface StoredBytes {
  sha256: string;
  size: number;
  /** Where they are; never from a user. */
  reference: string;
}

/** Where artifacts' bytes are. Every failure is an ARTIFACT_STORE, and trying again may help. */
export interface ArtifactStore {
  /** Resolves when the bytes are durable. Nothing is visible before, and nothing is left when it fails. */
  put(tenantId: string, content: Bytes): Promise<StoredBytes>;
  /** A stream that ends with VERIFY_FAILED when what was read is not what was stored. */
  get(reference: string): Promise<Readable>;
  has(reference: string): Promise<boolean>;
  remove(reference: string): Promise<void>;
  /** Everything that is stored, for the collection of what nobody needs; ages by the store's own clock. */
  list(): AsyncIterable<{ reference: string; ageSeconds: number }>;
}

/**
 * A name for new bytes: the tenant's hash, the digest, and an id of this very upload. Thanks to the id no later upload
 * can come to depend on bytes that are being collected; sharing goes through the rows (record_artifact).
 */
export function newReference(tenantId: string, sha256: string): string {
  const tenant = sha256Hex(tenantId).slice(0, 16);
  return `${tenant}/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}.${newId()}`;
}

const pattern = /^[0-9a-f]{16}\/([0-9a-f]{2})\/([0-9a-f]{2})\/(\1\2[0-9a-f]{60})\.[0-9a-f-]{36}$/;

/** The digest that a reference promises. One that no store has made is refused before it becomes a path. */
export function digestOf(reference: string): string {
  const digest = pattern.exec(reference)?.[3];
  if (digest !== undefined) return digest;
  throw new OracleError(
    "ARTIFACT_STORE",
    `${JSON.stringify(reference)} is not a reference of an artifact store.`,
  );
}

/** Somebody else's file or object is not ours to remove. */
export function isReference(name: string): boolean {
  return pattern.test(name);
}

/** What is read, checked against its digest at the end. */
export function verified(source: Readable, reference: string): Readable {
  const sha256 = digestOf(reference);
  const digest = createHash("sha256");
  const checked = new Transform({
    transform(chunk, _encoding, done) {
      digest.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      if (digest.digest("hex") === sha256) return done();
      const message = `The bytes under ${reference} are not those of their digest.`;
      done(new OracleError("VERIFY_FAILED", message, { field: "sha256" }));
    },
  });
  source.once("error", (error) => checked.destroy(storeError("read", error)));
  return pipeline(source, checked, () => {});
}

/** What a file system or a server says, as the one code of this layer; a server's error would bring its whole request. */
export function storeError(during: string, error: unknown): OracleError {
  if (error instanceof OracleError) return error;
  const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode === undefined ? "" : `HTTP ${$metadata.httpStatusCode} `;
  const said = `${status}${message || name || String(error)}`.replace(/\.$/, "");
  return new OracleError("ARTIFACT_STORE", `The artifact store cannot ${during}: ${said}.`);
}
