import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const readRoot = (path: string) => readFileSync(`${root}${path}`, "utf8");

/** Packages of this folder's own, which the project itself does not have. */
const ours = createRequire(new URL("./package.json", import.meta.url));

interface Yaml {
  parse(text: string, options?: { merge?: boolean }): unknown;
  parseAllDocuments(text: string): { toJS(): unknown; errors: Error[] }[];
}
export const yaml = ours("yaml") as Yaml;
