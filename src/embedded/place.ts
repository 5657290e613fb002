import { createHash } from "node:crypto";
import { chmod, lchown, mkdir, mkdtemp, readdir, rm, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { canUse, findAccount, isRoot, ownerOf } from "./account.js";
import { locked, unavailable } from "./failures.js";
import type { Home, State } from "./home.js";
import type { Account } from "./run.js";

/** The folder for data and log, and the account that owns it and runs the server (absent: ourselves). */
export interface Place {
  folder: string;
  account: Account | undefined;
}

const SHARED = "/var/lib/oracle-worker";

/** Finds the place again, or makes it: within the user's directory if the server's account can get there. */
export async function findPlace(home: Home, state: State | undefined): Promise<Place> {
  const inside = join(home.directory, "postgres");
  const outside = state !== undefined && state.place !== join(state.directory, "postgres");
  if (outside && state.directory !== home.directory) {
    throw locked(
      `${home.directory} was moved or copied from ${state.directory}, and its database is in ${state.place}. ` +
        `If it was copied, remove ${home.directory}; if it was moved, correct "directory" in its embedded.json.`,
    );
  }
  const folder = outside ? state.place : inside;
  if (!isRoot()) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { folder, account: undefined };
  }
  const owner = await ownerOf(folder);
  if (owner === undefined) return makePlace(home, inside);
  if (await canUse(owner, folder)) return { folder, account: owner };
  throw unavailable(
    `Postgres runs as the account ${owner.uid}, which cannot get into ${folder}: let it pass through the folders ` +
      `above (chmod o+x), or remove ${home.directory} to start with an empty database.`,
  );
}

/** What is made in the place is made as `<name>.new-<random>` and renamed; a killed process leaves the former. */
export async function sweepPlace(place: Place): Promise<void> {
  for (const name of await readdir(place.folder)) {
    if (!name.includes(".new-")) continue;
    // An orphaned initdb may still be writing there; what it leaves goes the next time.
    await rm(join(place.folder, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  }
}

/** Root only: a checkout under a closed home is out of reach for the account that runs Postgres. */
async function makePlace(home: Home, inside: string): Promise<Place> {
  const account = await findAccount();
  if (await makeInside(account, home, inside)) return { folder: inside, account };

  const key = createHash("sha256").update(home.directory).digest("hex").slice(0, 12);
  for (const prefix of [
    join(SHARED, `${key}-`),
    join(tmpdir(), `oracle-worker-${key}-`),
    `/tmp/oracle-worker-${key}-`,
  ]) {
    const folder = await makeUnique(prefix);
    if (folder !== undefined && (await giveTo(account, folder))) return { folder, account };
  }
  throw unavailable(
    `Postgres cannot run as root, and the account ${account.uid} that would run it can get into neither ` +
      `${home.directory} nor ${SHARED} nor ${tmpdir()}.`,
  );
}

/** Opens the directory itself for passage if that is all it takes: umask 077 and mkdtemp close it to others. */
async function makeInside(account: Account, home: Home, inside: string): Promise<boolean> {
  const mode = (await stat(home.directory)).mode & 0o7777;
  await mkdir(inside, { recursive: true, mode: 0o700 });
  if (await giveTo(account, inside)) return true;
  await chmod(home.directory, mode | 0o001);
  await mkdir(inside, { mode: 0o700 });
  if (await giveTo(account, inside)) return true;
  await chmod(home.directory, mode);
  return false;
}

/** Hands an empty folder over to the account; if it cannot get there, the folder goes again. */
async function giveTo(account: Account, folder: string): Promise<boolean> {
  await lchown(folder, account.uid, account.gid);
  if (await canUse(account, folder)) return true;
  await rmdir(folder);
  return false;
}

/** A random name, since others may write to the temporary folder and take a name they can guess. */
async function makeUnique(prefix: string): Promise<string | undefined> {
  const parent = dirname(prefix);
  try {
    if (parent === SHARED) {
      await mkdir(SHARED, { recursive: true });
      await chmod(SHARED, 0o755);
    }
    return await mkdtemp(join(parent, basename(prefix)));
  } catch {
    return undefined;
  }
}
