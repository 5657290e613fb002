import { createHash } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { Bytes } from "./store.js";

/** Writes a new file and brings it to disk; when that fails, nothing of it is left. */
export async function writeHashed(path: string, content: Bytes): Promise<{ sha256: string; size: number }> {
  const digest = createHash("sha256");
  let size = 0;
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      digest.update(chunk);
      size += chunk.byteLength;
      await file.appendFile(chunk);
    }
    await file.sync();
    await file.close();
  } catch (error) {
    await file.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
  return { sha256: digest.digest("hex"), size };
}
