import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "./oracle.js";

/** Not every machine has one; tests that need it say so and are skipped. */
export const redisInstalled = spawnSync("redis-server", ["--version"]).error === undefined;

/** A Redis server of this test's own, which can be killed and started again. */
export class TestRedis {
  private readonly folder = mkdtempSync(join(tmpdir(), "oracle-worker-redis-"));
  private process: ChildProcess | undefined;
  private port = 0;

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    this.port ||= await freePort();
    const settings = ["--port", this.port, "--bind", "127.0.0.1", "--save", "", "--dir", this.folder];
    this.process = spawn("redis-server", settings.map(String), { stdio: "ignore" });
    await until("Redis to answer", () => this.command((redis) => redis.ping()).catch(() => undefined));
  }

  async kill(): Promise<void> {
    const ended = this.process && once(this.process, "exit");
    this.process?.kill("SIGKILL");
    await ended;
    this.process = undefined;
  }

  /** SIGSTOP: connections stay open and nothing answers. */
  freeze(): void {
    this.process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.process?.kill("SIGCONT");
  }

  async command<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.url, {
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      lazyConnect: true,
    });
    redis.on("error", () => {});
    try {
      await redis.connect();
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  async close(): Promise<void> {
    this.thaw();
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
