import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { OracleError } from "../core/errors.js";
import { isJobDefinition, type JobDefinition } from "./define.js";
import { readManifest } from "./manifest.js";

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
    const definitions = manifestPattern.test(file) ? readManifest(file) : await loadModule(file);
    // A folder may hold JSON of any kind; a file that was named must be a manifest.
    if (!definitions && file === absolute) throw invalid(`${path} is no manifest: it has no list "jobs"`);
    for (const definition of definitions ?? []) found.add(definition);
  }
  if (found.size > 0) return [...found];
  throw invalid(`${path} defines no job: it must be, or hold, ${kinds}`);
}

async function loadModule(file: string): Promise<JobDefinition[]> {
  if (!modulePattern.test(file)) throw invalid(`${file} is not ${kinds}`);
  const exported = await importer(file)
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
function importer(file: string): ReturnType<typeof createJiti> {
  const alias: Record<string, string> = {
    "oracle-worker": fileURLToPath(new URL("../index.js", import.meta.url)),
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
