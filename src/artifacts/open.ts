import { artifactPlace } from "../core/artifact-place.js";
import { OracleError } from "../core/errors.js";
import { FolderStore } from "./folder.js";
import { openS3Store } from "./s3.js";
import type { ArtifactStore } from "./store.js";

/** The store that the setting ARTIFACTS names. A folder is made with the first artifact. */
export async function openArtifactStore(address: string): Promise<ArtifactStore> {
  const place = artifactPlace(address);
  if (!place) {
    const message = `ARTIFACTS is ${JSON.stringify(address)}; it must be file:FOLDER or s3://BUCKET/PREFIX.`;
    throw new OracleError("INVALID_SETTING", message, { field: "ARTIFACTS" });
  }
  return "folder" in place ? new FolderStore(place.folder) : openS3Store(place.bucket, place.prefix);
}
