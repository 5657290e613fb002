/** Where the setting ARTIFACTS says that bytes are kept. */
export type ArtifactPlace = { folder: string } | { bucket: string; prefix: string };

const s3Address = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[\w!*'()-][\w!.*'()-]*\/?)*))?$/;

/** `file:FOLDER`, `file:///FOLDER`, `s3://BUCKET` or `s3://BUCKET/PREFIX`; undefined for anything else. */
export function artifactPlace(address: string): ArtifactPlace | undefined {
  const folder = /^file:(?:\/\/(?=\/))?([^\0]+)$/.exec(address)?.[1];
  if (folder !== undefined) return folder.startsWith("//") ? undefined : { folder };
  const [, bucket, prefix = ""] = s3Address.exec(address) ?? [];
  return bucket === undefined ? undefined : { bucket, prefix: prefix.replace(/\/$/, "") };
}
