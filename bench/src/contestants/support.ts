import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { sleep } from "../servers/system.ts";

const BENCH = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** The installed version of a peer; '?' before `npm ci`. */
export function installedVersion(name: string): string {
  try {
    const file = join(BENCH, "node_modules", name, "package.json");
    return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
  } catch {
    return "?";
  }
}

/** Asks the store whether anything is left. Called only once the handlers have seen every job. */
export async function pollUntil(empty: () => Promise<boolean>): Promise<void> {
  while (!(await empty())) await sleep(5);
}

/** Runs a query that yields one boolean or number named `value`. */
export async function ask<T>(pool: pg.Pool | pg.Client, sql: string): Promise<T> {
  const { rows } = await pool.query<{ value: T }>(sql);
  if (!rows[0]) throw new Error(`no row from: ${sql}`);
  return rows[0].value;
}

/** In portions: what a library takes in one call has a best size. */
export async function inPortions<T>(
  all: T[],
  size: number,
  put: (portion: T[]) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < all.length; from += size) await put(all.slice(from, from + size));
}
