import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { findBinaries } from "./binaries.js";
import { ADMIN, type Cluster, clusterIn, DATABASE, LOGIN } from "./cluster.js";
import { systemFailure } from "./failures.js";
import { type Home, openHome, readState, writeState } from "./home.js";
import { initialise } from "./initialise.js";
import { withLock } from "./lock.js";
import { findPlace, sweepPlace } from "./place.js";
import { enter, leave, type Presence, present } from "./presence.js";
import { stopServer } from "./server.js";
import { ensureRunning } from "./start.js";

export interface EmbeddedOptions {
  /** Where data and state live. Default: `.oracle-worker` in the working directory. */
  directory?: string;
  /** A folder with `bin`, `lib` and `share` of Postgres. Default: the installed npm package's. */
  binaries?: string;
  /** Settings of the server; they count when this call starts the server, not when it joins one. */
  settings?: Record<string, string>;
}

export interface EmbeddedPostgres {
  /** For all but migrations: a login with no rights beyond those granted to it. */
  url: string;
  /** The superuser's, for migrations; the same database. */
  adminUrl: string;
  dataDirectory: string;
  /** Ends this use. The last use to end, in whatever process, stops the server. */
  release(): Promise<void>;
}

/**
 * A real Postgres with no installation: made at the first use, started if it is not running, shared by every
 * process that opens the same directory. A process that dies without `release` no longer counts.
 */
export async function openEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedPostgres> {
  const directory = resolve(options.directory ?? ".oracle-worker");
  try {
    const home = await openHome(directory);
    return await withLock(home.locks, async () => {
      const use = await enter(home.users, "user");
      try {
        return await attach(home, use, options);
      } catch (error) {
        await leave(home.users, use);
        throw error;
      }
    });
  } catch (error) {
    throw systemFailure(error, directory);
  }
}

async function attach(home: Home, use: Presence, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const state = await readState(home);
  const place = await findPlace(home, state);
  const remember = (port: number) =>
    writeState(home, { directory: home.directory, place: place.folder, port });
  // At once: were we killed later, a place outside the directory would be forgotten, and its server with it.
  await remember(state?.port ?? 0);
  await sweepPlace(place);
  const cluster = clusterIn(place, await findBinaries(place, options.binaries), options.settings ?? {});
  const passwords = await initialise(cluster);
  const port = await ensureRunning(cluster, state?.port ?? 0);
  await remember(port);
  const url = (role: string, secret: string) =>
    `postgresql://${role}:${secret}@127.0.0.1:${port}/${DATABASE}`;
  let released: Promise<void> | undefined;
  return {
    url: url(LOGIN, passwords.login),
    adminUrl: url(ADMIN, passwords.admin),
    dataDirectory: cluster.data,
    release: () => {
      released ??= endUse(home, use, cluster);
      return released;
    },
  };
}

async function endUse(home: Home, use: Presence, cluster: Cluster): Promise<void> {
  // The directory was removed under us, with every user's mark: nobody can join the server any more.
  if (!existsSync(home.locks)) return stopServer(cluster);
  await withLock(home.locks, async () => {
    await leave(home.users, use);
    if ((await present(home.users)).length === 0) await stopServer(cluster);
  });
}
