import { Readable } from "node:stream";
import type { ArtifactStore } from "./artifacts/store.js";
import { OracleError } from "./core/errors.js";
import { canonicalJson, sha256Hex } from "./core/hash.js";
import type { Artifact } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import { findArtifact } from "./store/artifact.js";
import type { Database } from "./store/database.js";

export interface OpenedArtifact extends Artifact {
  /** Fails at its end with VERIFY_FAILED when the bytes are not those of `sha256`. */
  content: Readable;
}

/** An artifact with its content, from its row or from the store. */
export async function openArtifact(
  db: Database,
  openStore: () => Promise<ArtifactStore>,
  idOrSha256: string,
): Promise<OpenedArtifact | undefined> {
  const found = await findArtifact(db, idOrSha256);
  if (!found) return undefined;
  const { artifact, place } = found;
  const content =
    "payload" in place
      ? Readable.from(inline(artifact, place.payload), { objectMode: false })
      : await (await openStore()).get(place.reference);
  return { ...artifact, content };
}

async function* inline({ artifactId, sha256 }: Artifact, payload: JsonValue): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(canonicalJson(payload), "utf8");
  yield bytes;
  if (sha256Hex(bytes) === sha256) return;
  const message = `The JSON of artifact ${artifactId} is not that of its digest.`;
  throw new OracleError("VERIFY_FAILED", message, { field: "sha256" });
}
