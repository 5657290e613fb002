import { constants, createReadStream } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { newId } from "../core/ids.js";
import {
  type ArtifactStore,
  type Bytes,
  digestOf,
  isReference,
  newReference,
  type StoredBytes,
  storeError,
  verified,
} from "./store.js";
import { writeHashed } from "./write.js";

/** Where bytes are written before they have their name. Listed like the rest, so that what a crash left goes too. */
const INCOMING = "incoming";
const incoming = /^incoming\/[0-9a-f-]{36}$/;

/** Keeps artifacts under a folder, in files that are complete from the moment they have their name. */
export class FolderStore implements ArtifactStore {
  private readonly root: string;

  constructor(folder: string) {
    this.root = resolve(folder);
  }

  async put(tenantId: string, content: Bytes): Promise<StoredBytes> {
    const written = this.at(`${INCOMING}/${newId()}`);
    try {
      await makeFolder(dirname(written));
      const { sha256, size } = await writeHashed(written, content);
      const reference = newReference(tenantId, sha256);
      const path = this.at(reference);
      await makeFolder(dirname(path));
      await rename(written, path);
      await syncFolder(dirname(path));
      return { sha256, size, reference };
    } catch (error) {
      await rm(written, { force: true }).catch(() => {});
      throw storeError("write", error);
    }
  }

  async get(reference: string): Promise<Readable> {
    digestOf(reference);
    try {
      // A link in place of the file is not followed.
      const file = await open(this.at(reference), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
      return verified(createReadStream("", { fd: file }), reference);
    } catch (error) {
      throw storeError(`read ${reference}`, error);
    }
  }

  async has(reference: string): Promise<boolean> {
    digestOf(reference);
    try {
      return (await lstat(this.at(reference))).isFile();
    } catch (error) {
      if (isMissing(error)) return false;
      throw storeError("look", error);
    }
  }

  async remove(reference: string): Promise<void> {
    if (!incoming.test(reference)) digestOf(reference);
    await rm(this.at(reference), { force: true }).catch((error: unknown) => {
      throw storeError("remove", error);
    });
  }

  async *list(): AsyncGenerator<{ reference: string; ageSeconds: number }> {
    try {
      const now = await this.clock();
      for await (const reference of this.walk("")) {
        const stats = await lstat(this.at(reference)).catch(ignoreMissing);
        if (stats) yield { reference, ageSeconds: (now - stats.mtimeMs) / 1000 };
      }
    } catch (error) {
      throw storeError("list", error);
    }
  }

  private at(reference: string): string {
    return join(this.root, reference);
  }

  private async *walk(folder: string): AsyncGenerator<string> {
    const entries = (await readdir(this.at(folder), { withFileTypes: true }).catch(ignoreMissing)) ?? [];
    for (const entry of entries) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.walk(path);
      else if (isReference(path) || incoming.test(path)) yield path;
    }
  }

  /** What the file system's clock says: on a network share it is not this machine's. */
  private async clock(): Promise<number> {
    const probe = this.at(`${INCOMING}/${newId()}`);
    await makeFolder(dirname(probe));
    await writeHashed(probe, new Uint8Array());
    const { mtimeMs } = await stat(probe);
    await rm(probe, { force: true });
    return mtimeMs;
  }
}

/** Makes a folder that is still there after a power cut, and so are those above it that had to be made. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

/** A new name is durable once its folder is. Windows neither needs nor allows it. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, constants.O_RDONLY);
  await folder.sync().finally(() => folder.close());
}

function isMissing(error: unknown): boolean {
  return (error as { code?: string }).code === "ENOENT";
}

function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}
