import type { ArtifactStore } from "./store.js";

const BATCH = 500;
/** Bytes come before their row; an upload is given this long to get one. */
const GRACE_SECONDS = 3600;

/**
 * Removes stored bytes that no row needs: left by attempts that ended between upload and record, or by rows that
 * were pruned. A row that appears meanwhile cannot name them, because each upload has a name of its own.
 */
export async function collectOrphans(
  store: ArtifactStore,
  findReferences: (references: string[]) => Promise<Set<string>>,
): Promise<number> {
  let removed = 0;
  let old: string[] = [];
  const removeUnused = async () => {
    const used = await findReferences(old);
    for (const reference of old) {
      if (used.has(reference)) continue;
      await store.remove(reference);
      removed++;
    }
    old = [];
  };
  for await (const { reference, ageSeconds } of store.list()) {
    if (ageSeconds < GRACE_SECONDS) continue;
    old.push(reference);
    if (old.length === BATCH) await removeUnused();
  }
  if (old.length > 0) await removeUnused();
  return removed;
}
