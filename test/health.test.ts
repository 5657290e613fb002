import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { until, useTestDatabase } from "./support/oracle.js";
import { handlers, type Running, runCli } from "./support/process.js";

// The pages that probes and Prometheus read, from a real worker with two processes.

const db = useTestDatabase();
const queue = "health";
let port = 0;
let worker: Running;

const page = async (path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
  return { status: response?.status, text: (await response?.text()) ?? "" };
};

beforeAll(async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as { port: number }).port;
  server.close();
  await once(server, "close");
  const env = {
    DATABASE_URL: db.url,
    HEALTH_PORT: String(port),
    POLL_INTERVAL: "100ms",
    SHUTDOWN_GRACE: "20s",
  };
  worker = runCli(["work", "--handlers", handlers, "--queues", queue, "--processes", "2"], env);
});

describe("a worker with a health port", () => {
  it("is ready once its processes are up", async () => {
    await until("readiness", async () => (await page("/readyz")).status === 200);
    expect(await page("/healthz")).toEqual({ status: 200, text: "ok\n" });
    expect((await page("/else")).status).toBe(404);
  });

  it("adds up what its processes count, and shows what waits", async () => {
    const jobs = await db.oracle.enqueueMany(
      "quick",
      Array.from({ length: 50 }, (_, n) => ({ n })),
      { queue },
    );
    for (const job of jobs) await job.result({ timeoutSeconds: 20 });
    const broken = await db.oracle.enqueue("quick", { n: "no number" }, { queue });
    await until("its failure", async () => (await broken.state()) === "FAILED_TERMINAL");
    await db.oracle.enqueue("quick", { n: 1 }, { queue: "nobody-serves-this" });
    const { status, text } = await page("/metrics");
    expect(status).toBe(200);
    expect(text).toContain('oracle_jobs_settled_total{queue="health",type="quick",outcome="succeeded"} 50');
    expect(text).toContain('oracle_job_failures_total{type="quick",cause="INPUT_INVALID"} 1');
    expect(text).toContain('oracle_job_wait_seconds_count{queue="health"} 51');
    expect(text).toContain('oracle_job_run_seconds_count{type="quick"} 51');
    expect(text).toMatch(/nodejs_eventloop_lag_seconds \S/);
    expect(text).toContain('oracle_queue_ready_jobs{queue="nobody-serves-this"} 1');
    expect(text).toMatch(/oracle_queue_oldest_seconds\{queue="nobody-serves-this"\} \d/);
  });

  it("is not live while a process is down, and is again when it was replaced", async () => {
    process.kill(worker.children()[0] as number, "SIGKILL");
    await until("the word of it", async () => (await page("/healthz")).status === 503);
    expect((await page("/readyz")).status).toBe(503);
    await until("its replacement", async () => (await page("/healthz")).status === 200);
  });

  it("is live but not ready while it drains", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
    const job = await db.oracle.enqueue("logged", { file, ms: 2000 }, { queue });
    await until("it to run", async () => (await job.state()) === "RUNNING");
    worker.process.kill("SIGTERM");
    await until("the drain", async () => (await page("/readyz")).text === "draining\n");
    expect((await page("/readyz")).status).toBe(503);
    await job.result({ timeoutSeconds: 20 });
    expect(await worker.ended).toBe(0);
  });
});
