import { createHash } from "node:crypto";
import type { ArtifactStore } from "./artifacts/store.js";
import { OracleError } from "./core/errors.js";
import { canonicalJson, sha256Hex } from "./core/hash.js";
import { type ArtifactContentPlace, findArtifact, listArtifacts } from "./store/artifact.js";
import type { Database } from "./store/database.js";
import { type Check, check } from "./verify.js";

/** Reads every artifact of a job and computes its digest anew. */
export async function verifyArtifacts(
  db: Database,
  openStore: () => Promise<ArtifactStore>,
  jobId: string,
): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { artifactId, name, sha256 } of await listArtifacts(db, jobId)) {
    const found = await findArtifact(db, artifactId);
    if (found)
      checks.push(check(`artifact ${JSON.stringify(name)}`, sha256, await digest(found.place, openStore)));
  }
  return checks;
}

async function digest(place: ArtifactContentPlace, openStore: () => Promise<ArtifactStore>): Promise<string> {
  if ("payload" in place) return sha256Hex(canonicalJson(place.payload));
  const store = await openStore();
  if (!(await store.has(place.reference))) return "missing";
  const hash = createHash("sha256");
  try {
    for await (const chunk of await store.get(place.reference)) hash.update(chunk);
  } catch (error) {
    // Said at the end of what was read: it is what we came to find out.
    if (!(error instanceof OracleError && error.code === "VERIFY_FAILED")) throw error;
  }
  return hash.digest("hex");
}
