import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import type { Account } from "./run.js";

interface WriteOptions {
  mode: number;
  /** Whom the file shall belong to; absent: ourselves. */
  account?: Account | undefined;
}

/** Replaces a file in one step: readers see the old text or the new, and a crash leaves one of the two. */
export async function replaceFile(path: string, text: string, options: WriteOptions): Promise<void> {
  const fresh = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    // wx: never through a link that somebody else put there.
    const file = await open(fresh, "wx", options.mode);
    try {
      await file.chmod(options.mode);
      if (options.account) await file.chown(options.account.uid, options.account.gid);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/** The file's text; undefined if there is no such file. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
