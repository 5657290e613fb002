import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "../core/errors.js";
import { type JsonValue, parseJsonText } from "../core/json.js";
import { defineJob, digest, type JobDefinition } from "./define.js";
import { anything, fromJsonSchema } from "./json-schema.js";

const known = [
  "type",
  "executable",
  "warm",
  "timeoutSeconds",
  "input",
  "output",
  "hosts",
  "env",
  "memoryMb",
  "cpuSeconds",
  "version",
  "backoff",
  "approve",
];

/** A job of a manifest before its values are checked. */
type Entry = { [key: string]: JsonValue };
/** Throws HANDLERS_INVALID for a field of one job. */
type Refuse = (field: string, why: string) => never;

/** The definitions of a manifest's executables; undefined for other JSON. */
export function readManifest(file: string): JobDefinition[] | undefined {
  const text = readFileSync(file, "utf8");
  // Before it is parsed: a folder may hold large JSON, or JSON with comments, that is none of our business.
  if (!/"jobs"\s*:/.test(text)) return undefined;
  const manifest = parse(text, file);
  if (!isObject(manifest) || !Array.isArray(manifest.jobs)) return undefined;
  const stranger = Object.keys(manifest).find((key) => key !== "jobs" && key !== "$schema");
  if (stranger !== undefined) throw invalid(file, stranger, `it must hold "jobs" and nothing else`);
  const definitions = manifest.jobs.map((entry, index) => toDefinition(file, entry, index));
  const types = definitions.map(({ type }) => type);
  const twice = types.findIndex((type, index) => types.indexOf(type) < index);
  if (twice !== -1) {
    const first = types.indexOf(types[twice] as string);
    throw invalid(file, `jobs[${twice}].type`, `jobs[${first}] is "${types[twice]}" already; each type once`);
  }
  return definitions;
}

function parse(text: string, file: string): JsonValue {
  try {
    return parseJsonText(text, undefined, "manifest");
  } catch (error) {
    const message = `${file}: ${(error as Error).message}`;
    throw new OracleError("HANDLERS_INVALID", message, { field: "--handlers", cause: error });
  }
}

function toDefinition(file: string, entry: JsonValue, index: number): JobDefinition {
  const place = `jobs[${index}]`;
  if (!isObject(entry)) throw invalid(file, place, "it must be an object with type and executable");
  const name = typeof entry.type === "string" ? `${place} ("${entry.type}")` : place;
  const refuse: Refuse = (field, why) => {
    throw new OracleError("HANDLERS_INVALID", `${file}, ${name}: ${why}.`, { field: `${place}.${field}` });
  };
  checkKeys(entry, refuse);
  const folder = dirname(file);
  const { executable, version, hosts: _, ...rest } = entry;
  try {
    return defineJob({
      ...(rest as { type: string }),
      input: toSchema(entry, "input", refuse),
      output: toSchema(entry, "output", refuse),
      executable: locate(executable, folder, refuse) as [string],
      version: (version as string | undefined) ?? fingerprint(executable, folder),
      cwd: folder,
    });
  } catch (error) {
    if (!(error instanceof OracleError) || error.code !== "INVALID_ARGUMENT") throw error;
    return refuse(error.field ?? "", error.message.replace(/^defineJob: /, "").replace(/\.$/, ""));
  }
}

function checkKeys(entry: Entry, refuse: Refuse): void {
  const stranger = Object.keys(entry).find((key) => !known.includes(key));
  if (stranger !== undefined) refuse(stranger, `${stranger} is unknown; it may have ${known.join(", ")}`);
  for (const field of ["type", "executable"]) {
    if (entry[field] === undefined) refuse(field, `${field} is missing`);
  }
  // Network calls are not checked against it yet; a manifest may name its hosts already.
  if (entry.hosts !== undefined && !isNames(entry.hosts))
    refuse("hosts", "hosts must be a list of host names");
}

function toSchema(entry: Entry, field: "input" | "output", refuse: Refuse): StandardSchemaV1 {
  const schema = entry[field];
  if (schema === undefined) return anything;
  if (typeof schema !== "boolean" && !isObject(schema))
    return refuse(field, `${field} must be a JSON Schema`);
  try {
    return fromJsonSchema(schema);
  } catch (error) {
    return refuse(field, `${field} is no JSON Schema of draft 2020-12: ${(error as Error).message}`);
  }
}

/** A program that lies beside the manifest is meant before one of the same name in PATH. */
function locate(executable: JsonValue | undefined, folder: string, refuse: Refuse): JsonValue | undefined {
  if (!isNames(executable) || executable.length === 0) return executable;
  const [program = "", ...args] = executable;
  const path = resolve(folder, program);
  if (isFile(path)) {
    if (!isExecutable(path)) refuse("executable", `${path} is not executable; \`chmod +x\` makes it so`);
    return [path, ...args];
  }
  if (program.includes("/")) refuse("executable", `${path} does not exist`);
  return executable;
}

/** Larger files count by their size alone. */
const LARGEST_READ_BYTES = 64 * 1_048_576;

/** Changes with the command and with what it names beside the manifest, and is the same on every machine. */
function fingerprint(executable: JsonValue | undefined, folder: string): string {
  const files = (isNames(executable) ? executable : [])
    .filter((part) => !isAbsolute(part) && isFile(join(folder, part)))
    .map((part) => {
      const path = join(folder, part);
      const { size } = statSync(path);
      return size > LARGEST_READ_BYTES ? String(size) : digest(readFileSync(path));
    });
  return digest(JSON.stringify([executable, files]));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isObject(value: JsonValue | undefined): value is Entry {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNames(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.every((part) => typeof part === "string" && part !== "");
}

function invalid(file: string, field: string, why: string): OracleError {
  return new OracleError("HANDLERS_INVALID", `${file}, ${field}: ${why}.`, { field });
}
