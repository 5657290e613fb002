import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Of this package: worker, schema and commands share it. */
export const version: string = manifest.version;
