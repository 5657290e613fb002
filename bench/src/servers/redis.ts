import { execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { stopAtEnd } from "./stops.ts";
import { endProcess, freePort, unprivileged, which } from "./system.ts";

export interface RedisServer {
  version: string;
  url: string;
  /** Empties it and puts the persistence settings that the next contestant states in force. */
  reset(config: Record<string, string>): Promise<void>;
}

export const REDIS_MISSING = "redis-server is not installed (Debian: apt-get install redis-server)";
const NO_PERSISTENCE = { appendonly: "no", appendfsync: "everysec" };

export async function startRedis(): Promise<RedisServer | undefined> {
  const binary = which("redis-server");
  if (!binary) return undefined;
  const identity = unprivileged();
  const home = mkdtempSync(join(tmpdir(), "oracle-bench-redis-"));
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(home, identity.uid, identity.gid);
  const port = await freePort();
  const flags = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    home,
    "--save",
    "",
    "--daemonize",
    "no",
  ];
  const server = spawn(binary, flags, { ...identity, cwd: home, detached: true, stdio: "ignore" });
  const client = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => 100 });
  client.on("error", () => undefined);
  stopAtEnd("Redis", async () => {
    client.disconnect();
    await endProcess(server, "SIGTERM", 10_000);
    rmSync(home, { recursive: true, force: true });
  });
  await client.connect().catch(() => undefined);
  await client.ping();

  return {
    version: /v=(\S+)/.exec(execFileSync(binary, ["--version"], { encoding: "utf8" }))?.[1] ?? "?",
    url: `redis://127.0.0.1:${port}`,
    async reset(config) {
      await client.flushall();
      for (const [name, value] of Object.entries({ ...NO_PERSISTENCE, ...config })) {
        await client.config("SET", name, value);
      }
    },
  };
}
