import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { runCli } from "./support/process.js";
import { redisInstalled, TestRedis } from "./support/redis.js";

// examples/model-run/ as its README says: a message starts it, the command line watches it.

const root = fileURLToPath(new URL("..", import.meta.url));
const db = useTestDatabase();
const redis = new TestRedis();
let env: Record<string, string>;

beforeAll(async () => {
  if (redisInstalled) await redis.start();
  env = {
    DATABASE_URL: db.url,
    REDIS_URL: redis.url,
    ARTIFACTS: `file:${db.artifacts}`,
    WORKER_ID: "modeller",
    POLL_INTERVAL: "1h",
  };
});
afterAll(() => redis.close());

/** Runs start.mjs: the id it prints, and the word behind it. */
async function start(runs: number): Promise<string[]> {
  const args = ["examples/model-run/start.mjs", String(runs)];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  });
  return stdout.trim().split(" ");
}

/** What BullMQ says has become of messages whose id begins so. */
function fateOf(jobId: string): Promise<string[]> {
  return redis.command(async (client) => {
    const fates: string[] = [];
    for (const stream of await client.keys("oracle:*:events")) {
      for (const [, fields] of await client.xrange(stream, "-", "+")) {
        if (fields.some((field) => field.startsWith(jobId))) fates.push(fields[1] as string);
      }
    }
    return fates;
  });
}

describe.skipIf(!redisInstalled)("examples/model-run", { timeout: 300_000 }, () => {
  it("is started by a message, runs with an owner and a lease, and leaves its numbers as an artifact", async () => {
    const handlers = `${root}/examples/model-run/handlers.json`;
    const worker = runCli(["work", "--handlers", handlers, "--queues", "models"], env);
    await until("it to serve", async () => worker.output().includes("worker started"), 60_000);

    const [id = "", word] = await start(25_000);
    expect(word).toBe("new");
    const running = await until(
      "it to report progress",
      async () => {
        const { json } = await runToEnd(["jobs", "show", id], { env });
        const [attempt] = json.attempts as { worker_id: string; status: string; progress: object | null }[];
        return attempt?.progress ? { job: json, attempt } : undefined;
      },
      60_000,
    );
    expect(running.job.state).toBe("RUNNING");
    expect(running.attempt).toMatchObject({
      status: "RUNNING",
      worker_id: expect.stringMatching(/^modeller\./),
      progress: { message: expect.stringMatching(/^run \d+ of 25000$/) },
    });
    expect(Date.parse(running.job.lease_expires_at as string)).toBeGreaterThan(Date.now());
    const shown = await runAsPerson(["jobs", "show", id], { env });
    expect(shown.stdout).toMatch(/RUNNING[\s\S]*lease ends[\s\S]*modeller\./);
    expect(await start(25_000)).toEqual([id, "joined"]);

    const { json: ended, code } = await runToEnd(["jobs", "wait", id], { env });
    expect([code, ended.state]).toEqual([0, "SUCCEEDED"]);
    const { result_ref, median_peak } = ended.result as {
      result_ref: { artifact_id: string; sha256: string; size: number };
      median_peak: number;
    };
    const { stdout } = await runAsPerson(["jobs", "artifact", id, result_ref.artifact_id], { env });
    expect(createHash("sha256").update(stdout).digest("hex")).toBe(result_ref.sha256);
    expect(Buffer.byteLength(stdout)).toBe(result_ref.size);
    const document = JSON.parse(stdout);
    expect(document.mean_infected_per_day).toHaveLength(150);
    expect(document.peak_quantiles["50"]).toBe(median_peak);

    // One message, taken and acknowledged, and it was the message that won: a loss would be in the log.
    expect((await fateOf(id)).filter((fate) => fate === "completed")).toHaveLength(1);
    expect(worker.output()).not.toContain("Lease acquisition failed");
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
  });
});
