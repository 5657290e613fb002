import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { readSettings, type SettingName, type Settings, settingsTable } from "../core/settings.js";

/** Settings as texts, not yet checked. */
export type RawSettings = Partial<Record<SettingName, string | undefined>>;

const fileNames = ["oracle-worker.config.ts", "oracle-worker.config.json"];

/** The file's settings, overridden by the environment's, overridden by the command's flags. */
export async function loadSettings(command: Command, flags: RawSettings = {}): Promise<Settings> {
  const { databaseUrl } = command.optsWithGlobals<{ databaseUrl?: string }>();
  return readSettings(await readConfigFile(process.cwd()), process.env, {
    DATABASE_URL: databaseUrl,
    ...flags,
  });
}

/** The settings file of a folder, in either form; none is no fault, two are. */
async function readConfigFile(folder: string): Promise<RawSettings> {
  const [file, second] = fileNames.filter((name) => existsSync(resolve(folder, name)));
  if (file === undefined) return {};
  if (second !== undefined) throw wrongFile(file, `and ${second} are both there; keep one of them`);
  const content = await load(resolve(folder, file), file);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw wrongFile(file, 'must hold an object of settings, such as {"CONCURRENCY": 20}');
  }
  const entries = Object.entries(content).map(([name, value]) => [
    checkName(name, file),
    toText(name, value, file),
  ]);
  return Object.fromEntries(entries);
}

async function load(path: string, file: string): Promise<unknown> {
  try {
    if (file.endsWith(".json")) return JSON.parse(readFileSync(path, "utf8"));
    // Loaded only when needed: it brings a whole TypeScript parser.
    const { createJiti } = await import("jiti");
    return await createJiti(pathToFileURL(path).href).import(path, { default: true });
  } catch (error) {
    throw wrongFile(file, `cannot be read: ${(error as Error).message}`);
  }
}

function checkName(name: string, file: string): SettingName {
  const known = settingNames().find((candidate) => candidate === name);
  if (known) return known;
  throw wrongFile(
    file,
    `holds ${JSON.stringify(name)}, which is not a setting. Known: ${settingNames().join(", ")}`,
    name,
  );
}

/** A file may write 20, true and ["a", "b"] where the environment has only texts. */
function toText(name: string, value: unknown, file: string): string {
  const items = Array.isArray(value) ? value : [value];
  const plain = items.every((item) => ["string", "number", "boolean"].includes(typeof item));
  if (items.length > 0 && plain) return items.join(",");
  throw wrongFile(
    file,
    `holds a value for ${name} that is not a text, number, true or false, or a list of texts`,
    name,
  );
}

function settingNames(): SettingName[] {
  return Object.keys(settingsTable) as SettingName[];
}

function wrongFile(file: string, why: string, field = file): OracleError {
  return new OracleError("INVALID_SETTING", `${file} ${why}.`, { field });
}
