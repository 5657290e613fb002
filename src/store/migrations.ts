import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Migration {
  number: number;
  name: string;
  /** With `{schema}` and `{role}` still to be filled in. */
  text: string;
  checksum: string;
}

const folder = fileURLToPath(new URL("../../db/", import.meta.url));

let loaded: Migration[] | undefined;

/** The numbered files of db/migrations, in order. */
export function migrations(): Migration[] {
  loaded ??= readdirSync(`${folder}migrations`)
    .filter((file) => /^\d{3}_.+\.sql$/.test(file))
    .sort()
    .map((file) => {
      const text = readFileSync(`${folder}migrations/${file}`, "utf8");
      return {
        number: Number(file.slice(0, 3)),
        name: file.slice(4, -4),
        text,
        checksum: createHash("sha256").update(text).digest("hex"),
      };
    });
  return loaded;
}

export function latestMigration(): number {
  return migrations().at(-1)?.number ?? 0;
}

/** Creates the installation's roles where they are missing; runs before every migration. */
export function rolesSql(): string {
  return readFileSync(`${folder}roles.sql`, "utf8");
}

/** Roles are named after the schema they belong to, also while a scratch copy of it is made elsewhere. */
export function renderSql(text: string, schema: string, role = schema): string {
  return text.replaceAll("{schema}", schema).replaceAll("{role}", role);
}
