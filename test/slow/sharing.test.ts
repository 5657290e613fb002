import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EnqueueOptions } from "oracle-worker";
import { describe, expect, it } from "vitest";
import { Claimer } from "../../dist/worker/claimer.js";
import { workerDatabase } from "../support/leases.js";
import { until, useTestDatabase } from "../support/oracle.js";
import { handlers, runCli } from "../support/process.js";

// What sharing between tenants promises, at full size and with many processes.

const db = useTestDatabase();

describe("a tenant with 100,000 waiting jobs", () => {
  it("makes another's single jobs wait two claims longer than alone at most", async () => {
    const store = workerDatabase(db);
    const take = new Claimer(store, { workerId: "w", queues: ["flooded"], leaseSeconds: 60, versions: {} });
    /** How many claims of a size a new job of a new tenant takes. */
    const claimsFor = async (tenant: string, size: number): Promise<number> => {
      const { id } = await db.oracle.enqueue("any", 1, { queue: "flooded", tenant });
      take.nudge();
      for (let claims = 1; claims < 50; claims++) {
        const { leases } = await take.take(size);
        if (leases.some(({ jobId }) => jobId === id)) return claims;
      }
      throw new Error("fifty claims passed the job by");
    };
    const rounds = [1, 10, 100, 500].flatMap((size) => Array.from({ length: 50 }, () => size));
    const alone: number[] = [];
    for (const [n, size] of rounds.entries()) alone.push(await claimsFor(`alone-${n}`, size));
    for (let n = 0; n < 20; n++) {
      await db.oracle.enqueueMany("any", Array(5000).fill(1), { queue: "flooded", tenant: "flood" });
    }
    const beside: number[] = [];
    for (const [n, size] of rounds.entries()) {
      await take.take(size);
      beside.push(await claimsFor(`beside-${n}`, size));
    }
    const p99 = (claims: number[]) => claims.toSorted((a, b) => a - b)[Math.floor(claims.length * 0.99)] ?? 0;
    expect(p99(beside) - p99(alone)).toBeLessThanOrEqual(2);
    const [left] = await db.sql("SELECT count(*)::int AS n FROM oracle.ready_jobs WHERE tenant_id = 'flood'");
    expect(left?.n, "the flood was there all the time").toBeGreaterThan(10_000);
    await store.close();
  });
});

describe("a cap of 1 before eight processes", () => {
  it.each([
    ["a tenant's", { tenant: "capped" }],
    ["a concurrency key's", { tenant: "keyed", concurrencyKey: "one" }],
  ])("%s never lets two run", async (_, options: EnqueueOptions) => {
    const JOBS = 100;
    await db.oracle.setTenant("capped", { maxRunning: 1 });
    const queue = `cap-${options.tenant}`;
    const file = join(mkdtempSync(join(tmpdir(), "oracle-worker-")), "runs");
    const env = { DATABASE_URL: db.url, POLL_INTERVAL: "50ms", CONCURRENCY: "4" };
    const worker = runCli(["work", "--handlers", handlers, "--queues", queue, "--processes", "8"], env);
    await until(
      "eight workers",
      async () => {
        const live = await db.sql("SELECT FROM oracle.workers WHERE queues = ARRAY[$1]", [queue]);
        return live.length === 8;
      },
      120_000,
    );
    await db.oracle.enqueueMany(
      "spanned",
      Array.from({ length: JOBS }, () => ({ file, ms: 5 })),
      { queue, ...options },
    );
    const lines = () => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);
    let most = 0;
    await until(
      "all to run",
      async () => {
        const [row] = await db.sql(
          "SELECT count(*)::int AS n FROM oracle.jobs WHERE queue_name = $1 AND state = 'RUNNING'",
          [queue],
        );
        most = Math.max(most, row?.n ?? 0);
        return lines().length === 2 * JOBS;
      },
      240_000,
    );
    worker.process.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(most).toBe(1);
    const seen = lines();
    for (let n = 0; n < seen.length; n += 2) {
      const pid = seen[n]?.split(" ")[1];
      expect([seen[n], seen[n + 1]]).toEqual([`begin ${pid}`, `end ${pid}`]);
    }
    expect(new Set(seen.map((line) => line.split(" ")[1])).size, "processes that took part").toBeGreaterThan(
      1,
    );
  });
});
