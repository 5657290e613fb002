import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { OracleError } from "../core/errors.js";
import { isJobDefinition, type JobDefinition } from "./define.js";

const modulePattern = /\.(?:ts|mts|js|mjs)$/;

/** Loads a module, or every module of a folder, and returns what its exports define with `defineJob`. */
export async function loadHandlers(path: string): Promise<JobDefinition[]> {
  const files = findModules(resolve(path), path);
  const found = new Set<JobDefinition>();
  for (const file of files) {
    const exported = await importer(file)
      .import<Record<string, unknown>>(file)
      .catch((error: unknown) => {
        throw invalid(
          `${file} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
          error,
        );
      });
    for (const value of Object.values(exported)) if (isJobDefinition(value)) found.add(value);
  }
  if (found.size === 0) throw invalid(`${path} exports nothing made with defineJob`);
  return [...found];
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

function findModules(absolute: string, given: string): string[] {
  const stats = statSync(absolute, { throwIfNoEntry: false });
  if (!stats) throw invalid(`${given} does not exist`);
  if (!stats.isDirectory()) {
    if (modulePattern.test(absolute)) return [absolute];
    throw invalid(`${given} is not a .ts, .mts, .js or .mjs module`);
  }
  const files = readdirSync(absolute)
    .filter((name) => modulePattern.test(name) && !/\.(?:test|spec|d)\.[mc]?ts$/.test(name))
    .sort()
    .map((name) => join(absolute, name));
  if (files.length === 0) throw invalid(`${given} holds no .ts, .mts, .js or .mjs module`);
  return files;
}

function invalid(message: string, cause?: unknown): OracleError {
  return new OracleError("HANDLERS_INVALID", `${message}.`, { field: "--handlers", cause });
}
