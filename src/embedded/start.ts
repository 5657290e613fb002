import { constants } from "node:fs";
import { open, readFile, rename, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { OracleError } from "../core/errors.js";
import type { Cluster } from "./cluster.js";
import { locked, programFailure } from "./failures.js";
import { freePort } from "./port.js";
import { type Launched, launch } from "./run.js";
import { findServer, isOurs, MARK, type Server } from "./server.js";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
const START_SECONDS = 30;
const LOG_BYTES = 10 * 1024 * 1024;

const DEFAULTS = {
  shared_buffers: "128MB",
  max_connections: "100",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  password_encryption: "scram-sha-256",
};

const PORT_TAKEN = /could not bind|could not create any TCP/;
/** Another start won, or the sessions of a killed server are still on their way out: wait and look again. */
const PASSING = /lock file "postmaster.pid" already exists|pre-existing shared memory block/;

interface Attempt {
  process: Launched;
  /** Where in the log its lines begin. */
  logStart: number;
}

/** Joins the running server or starts one; returns its port. */
export async function ensureRunning(cluster: Cluster, lastPort: number): Promise<number> {
  const deadline = Date.now() + START_SECONDS * 1000;
  let preferred = lastPort;
  let attempt: Attempt | undefined;
  for (;;) {
    const server = await findServer(cluster.data);
    if (server?.ready && (await isOurs(cluster.data))) return server.port;
    if (server?.ready || server?.single) throw inUse(cluster, server);
    if (Date.now() > deadline) throw await tooLate(cluster, attempt);
    if (attempt?.process.ended) {
      const said = await loggedSince(cluster, attempt.logStart);
      if (PORT_TAKEN.test(said)) preferred = 0;
      else if (!PASSING.test(said)) {
        throw await programFailure("The embedded Postgres did not start", cluster.place.folder, said);
      }
      await sleep(100);
    }
    // Without an attempt of ours a server may be on its way up or down: that of a process killed meanwhile.
    if (server === undefined && attempt?.process.ended !== false) {
      attempt = await start(cluster, await freePort(preferred));
    }
    await sleep(20);
  }
}

async function start(cluster: Cluster, port: number): Promise<Attempt> {
  const { account, folder } = cluster.place;
  const settings = {
    ...DEFAULTS,
    ...cluster.settings,
    listen_addresses: "127.0.0.1",
    port: String(port),
    // A socket's path may be no longer than 107 bytes, which a deep checkout exceeds.
    unix_socket_directories: "",
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  if ((await logSize(cluster)) > LOG_BYTES) await rename(cluster.log, `${cluster.log}.old`);
  // Never through a link: the folder belongs to the server's account, and we may be root.
  const log = await open(cluster.log, O_WRONLY | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), 0o600);
  try {
    if (account) await log.chown(account.uid, account.gid);
    const logStart = await logSize(cluster);
    const args = ["-D", cluster.data, "-c", MARK, ...flags];
    const process = await launch(cluster.binaries.postgres, args, { cwd: folder, account, log: log.fd });
    return { process, logStart };
  } finally {
    await log.close();
  }
}

async function loggedSince(cluster: Cluster, start: number): Promise<string> {
  const log = await readFile(cluster.log).catch(() => Buffer.alloc(0));
  return log.subarray(start).toString();
}

async function logSize(cluster: Cluster): Promise<number> {
  return (await stat(cluster.log).catch(() => undefined))?.size ?? 0;
}

function inUse(cluster: Cluster, server: Server): OracleError {
  return locked(
    `${cluster.data} is in use by process ${server.pid}${server.single ? "" : ` (Postgres on port ${server.port})`}, ` +
      "which oracle-worker did not start: stop that process, then try again.",
  );
}

async function tooLate(cluster: Cluster, attempt: Attempt | undefined): Promise<OracleError> {
  const said = await loggedSince(cluster, attempt?.logStart ?? 0);
  if (attempt?.process.ended && PASSING.test(said)) {
    return locked(`Processes of a killed Postgres still use ${cluster.data}: end them, then try again.`);
  }
  return programFailure(
    `The embedded Postgres was not ready within ${START_SECONDS} seconds; if it is recovering from a crash, try again later`,
    cluster.place.folder,
    said,
  );
}
