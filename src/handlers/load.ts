import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Jiti } from "jiti";
import { OracleError } from "../core/errors.js";
import { isJobDefinition, type JobDefinition } from "./define.js";

const modulePattern = /\.(?:ts|mts|js|mjs)$/;
const manifestPattern = /\.json$/;
/** What else lies in folders of code. */
const otherPattern = /\.(?:test|spec|d)\.[mc]?ts$|^package(?:-lock)?\.json$|^[jt]sconfig.*\.json$/;
const kinds = "a .ts, .mts, .js or .mjs module or a .json manifest";

/**
 * The jobs of a module or manifest, or of all those in a folder: a module's exports made with `defineJob`, a
 * manifest's executables.
 */
export async function loadHandlers(path: string): Promise<JobDefinition[]> {
  const absolute = resolve(path);
  const stats = statSync(absolute, { throwIfNoEntry: false });
  if (!stats) throw invalid(`${path} does not exist`);
  const found = new Set<JobDefinition>();
  for (const file of stats.isDirectory() ? filesIn(absolute) : [absolute]) {
    const definitions = await (manifestPattern.test(file) ? loadManifest(file) : loadModule(file));
    // A folder may hold JSON of any kind; a file that was named must be a manifest.
    if (!definitions && file === absolute) throw invalid(`${path} is no manifest: it has no list "jobs"`);
    for (const definition of definitions ?? []) found.add(definition);
  }
  if (found.size > 0) return [...found];
  throw invalid(`${path} defines no job: it must be, or hold, ${kinds}`);
}

// What each kind needs is loaded with the first of its kind: a worker's start is time without work.

async function loadManifest(file: string): Promise<JobDefinition[] | undefined> {
  const { readManifest } = await import("./manifest.js");
  return readManifest(file);
}

async function loadModule(file: string): Promise<JobDefinition[]> {
  if (!modulePattern.test(file)) throw invalid(`${file} is not ${kinds}`);
  const exported = await (await importer(file))
    .import<Record<string, unknown>>(file)
    .catch((error: unknown) => {
      throw invalid(
        `${file} cannot be loaded: ${(error instanceof Error ? error.message : String(error)).replace(/\.$/, "")}`,
        error,
      );
    });
  return Object.values(exported).filter(isJobDefinition);
}

function filesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => modulePattern.test(name) || manifestPattern.test(name))
    .filter((name) => !otherPattern.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** A handlers file may lie anywhere, also where neither this package nor a schema library is installed. */
async function importer(file: string): Promise<Jiti> {
  const { createJiti } = await import("jiti");
  const alias: Record<string, string> = {
    "oracle-worker": fileURLToPath(new URL("../index.js", import.meta.url)),
    "oracle-worker/evolution": fileURLToPath(new URL("../evolution/index.js", import.meta.url)),
  };
  try {
    createRequire(file).resolve("zod");
  } catch {
    alias.zod = fileURLToPath(import.meta.resolve("zod"));
  }
  return createJiti(file, { alias, interopDefault: false });
}

function invalid(message: string, cause?: unknown): OracleError {
  return new OracleError("HANDLERS_INVALID", `${message}.`, { field: "--handlers", cause });
}
