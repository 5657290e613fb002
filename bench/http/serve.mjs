// What both measurements start: an embedded PostgreSQL with its default settings, and `oracle-worker serve` on it.
import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openEmbedded } from "../../dist/embedded/index.js";
import { connect } from "../../dist/index.js";

const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** A server over the data in `directory`, which is kept; `stop` ends what was started here. */
export async function startServer(directory) {
  const embedded = await openEmbedded({ directory, settings: { max_connections: "100" } });
  const databaseUrl = embedded.adminUrl;
  const oracle = await connect({ databaseUrl });
  await oracle.migrate();
  await oracle.close();
  const env = { ...process.env, DATABASE_URL: databaseUrl, LOG_LEVEL: "error" };
  const server = spawn(process.execPath, [cli, "serve", "--port", "0"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (chunk) => {
      text += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
      if (found) resolve(found);
    });
    server.once("exit", () => reject(new Error(`serve ended: ${text}`)));
  });
  return {
    databaseUrl,
    url,
    /** Without a tenant: for all of them. */
    token(role, tenant = "--all") {
      const made = execFileSync(
        process.execPath,
        [cli, "tenants", "token", tenant, "--role", role, "--json"],
        { env },
      );
      return JSON.parse(made.toString()).token;
    },
    /** Milliseconds of processor time so far, of the server and of PostgreSQL: what it takes however busy the machine is. */
    processorTime() {
      const postmaster = readFileSync(join(directory, "postgres/data/postmaster.pid"), "utf8").split("\n")[0];
      const stats = readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map(readStat);
      const ours = stats.filter(
        (stat) =>
          stat &&
          (stat.pid === server.pid || stat.pid === Number(postmaster) || stat.parent === Number(postmaster)),
      );
      return ours.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
    },
    async stop() {
      server.removeAllListeners("exit");
      server.kill("SIGTERM");
      await new Promise((resolve) => server.once("close", resolve));
      await embedded.release();
    },
  };
}

function readStat(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
    // Ticks of 10 ms, of the process itself and of its children that have ended.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { pid: Number(pid), parent: Number(fields[1]), milliseconds: ticks * 10 };
  } catch {
    return undefined; // ended meanwhile
  }
}

/** The value below which that share of them lies. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
