import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { readSettings } from "../dist/core/settings.js";
import type { Finding } from "../dist/store/doctor/check.js";
import { snapshots } from "../dist/store/doctor/snapshots.js";
import { runAsPerson, runToEnd } from "./support/cli.js";
import { echo } from "./support/jobs.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { type TestLogin, useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";
import { hasPgbouncer, Pgbouncer } from "./support/pgbouncer.js";
import { startHandler } from "./support/run.js";

// What `doctor` says of an installation that runs. What it says of roles and row-level security: roles.test.ts.

const db = useTestDatabase();
const login = useLogins(db);
let program: TestLogin;
beforeAll(async () => {
  program = await login({ roles: ["worker"] });
});

const doctor = (env: Record<string, string> = {}, ...flags: string[]) =>
  runToEnd(["doctor", ...flags], { env: { DATABASE_URL: program.url, ...env } });

const found = (end: { json: Record<string, unknown> }, check: string) =>
  (end.json.findings as Finding[]).filter((finding) => finding.check === check);

describe("a clock", () => {
  it("that agrees is fine; one that is a minute off is told, with the distance", async () => {
    expect(found(await doctor(), "clock")).toMatchObject([{ level: "ok" }]);
    const shift = "const now = Date.now; Date.now = () => now() + 60_000";
    const end = await doctor({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}` });
    const [finding] = found(end, "clock");
    expect(finding).toMatchObject({ level: "warn", fix: expect.stringContaining("synchronise") });
    const seconds = Number(/are ([\d.]+) s apart/.exec(finding?.message ?? "")?.[1]);
    // Less what the question itself took.
    expect(seconds).toBeGreaterThan(20);
    expect(seconds).toBeLessThanOrEqual(60.1);
  });
});

describe("an open transaction", () => {
  it("is told with its age, who holds it and how to end it, and is not once it has ended", async () => {
    const examine = () =>
      db.oracle.withAdmin((admin) =>
        snapshots(0.2).examine({ db: db.oracle.db, admin, settings: readSettings({}) }),
      );
    const client = new pg.Client({ connectionString: db.url, application_name: "forgotten report" });
    // The fix ends it from outside.
    client.on("error", () => {});
    await client.connect();
    await client.query("BEGIN");
    const { rows } = await client.query("SELECT pg_backend_pid() AS pid, current_user AS login");
    const mine = (finding: { message: string }) => finding.message.includes("forgotten report");
    const finding = await until("the finding", async () => (await examine()).find(mine));
    expect(finding.level).toBe("warn");
    expect(finding.message).toContain(`of ${rows[0].login} (forgotten report, idle in transaction)`);
    expect(finding.fix).toBe(`end it, or SELECT pg_terminate_backend(${rows[0].pid})`);
    await db.sql((finding.fix as string).replace("end it, or ", ""));
    await until("its end", async () => !(await examine()).some(mine));
  });
});

describe("stuck work", () => {
  it("is a lease that ran out and that nobody takes over", async () => {
    expect(found(await doctor(), "stuck work")).toMatchObject([{ level: "ok" }]);
    const { id } = await db.oracle.enqueue(echo, { n: 1 }, { queue: "left-behind" });
    const own = workerDatabase(db);
    expect((await claimFrom(own, "left-behind")).leases).toHaveLength(1);
    await own.close();
    expect(found(await doctor(), "stuck work")).toMatchObject([{ level: "ok" }]);
    await db.sql(
      `SET session_replication_role = replica;
       UPDATE oracle.jobs SET lease_expires_at = lease_expires_at - interval '1 hour' WHERE job_id = '${id}';
       UPDATE oracle.claims SET expires_at = expires_at - interval '1 hour' WHERE '${id}' = ANY (job_ids);
       RESET session_replication_role`,
    );
    expect(found(await doctor(), "stuck work")).toMatchObject([
      { level: "warn", message: "leases that ran out and that nobody takes over: 1" },
    ]);
    // What it advises helps.
    const worker = await db.worker({ jobs: [echo], queues: ["left-behind"] });
    await until("its end", async () => (await db.oracle.get(id))?.state === "SUCCEEDED");
    expect(found(await doctor(), "stuck work")).toMatchObject([{ level: "ok" }]);
    await worker.stop();
  });

  it("is a job that is held for a person, with what the person can do", async () => {
    const { id, rested, stop } = await startHandler(
      db,
      async ({ plan }) => {
        await plan([{ key: "pay", kind: "idempotent", request: {} }]);
        return null;
      },
      { approve: "person" },
    );
    await rested();
    const strict = await doctor({}, "--strict");
    expect(found(strict, "stuck work")).toEqual([
      {
        check: "stuck work",
        level: "warn",
        message: `held jobs: 1 (awaiting approval), such as ${id}`,
        fix: `\`oracle-worker approve ${id}\`, or reject`,
      },
    ]);
    // A warning fails the strict only, and people read the fix below it.
    expect(strict).toMatchObject({ code: 1, json: { healthy: false }, error: { code: "CHECK_FAILED" } });
    expect(await doctor()).toMatchObject({ code: 0, json: { healthy: true } });
    const person = await runAsPerson(["doctor"], { env: { DATABASE_URL: program.url } });
    expect(person.stdout).toContain(`→ \`oracle-worker approve ${id}\`, or reject`);
    await db.oracle.reject(id, "a test");
    expect(found(await doctor(), "stuck work")).toMatchObject([{ level: "ok" }]);
    await stop();
  });

  it("is a job that was ready for an hour, unless its queue is paused", async () => {
    const { id } = await db.oracle.enqueue(echo, { n: 1 }, { queue: "slow" });
    await db.sql(
      `SET session_replication_role = replica;
       UPDATE oracle.jobs SET run_after = run_after - interval '3 hours' WHERE job_id = '${id}';
       RESET session_replication_role`,
    );
    expect(found(await doctor(), "stuck work")).toMatchObject([
      {
        level: "warn",
        message: "ready for more than an hour in queue slow: 1 jobs, the first for 3.0 hours",
        fix: expect.stringContaining("--queues slow"),
      },
    ]);
    await db.oracle.pauseQueue("slow");
    expect(found(await doctor(), "stuck work")).toMatchObject([{ level: "ok" }]);
  });
});

describe("wake-ups", () => {
  it("are heard on a straight connection", async () => {
    expect(found(await doctor(), "wake-ups")).toMatchObject([{ level: "ok" }]);
  });

  it.skipIf(!hasPgbouncer)(
    "are not heard through a pooler in transaction mode (skipped where PgBouncer is not installed)",
    async () => {
      // It takes the settings at a session's start and forgets them: nothing fails, and nothing is heard.
      const quiet = "ignore_startup_parameters = options\n";
      const bouncer = await Pgbouncer.start(new URL(db.url), [new URL(program.url)], quiet);
      try {
        const pooled = bouncer.url(program.url);
        const wrong = await doctor({
          DATABASE_URL: `${pooled}?application_name=doctor`,
          DIRECT_DATABASE_URL: pooled,
        });
        expect(found(wrong, "wake-ups")).toEqual([
          {
            check: "wake-ups",
            level: "warn",
            message: expect.stringContaining("a wake-up did not arrive: nothing within"),
            fix: "if a pooler is in between, set DIRECT_DATABASE_URL to the server itself",
          },
        ]);
        const right = await doctor({ DATABASE_URL: pooled, DIRECT_DATABASE_URL: program.url });
        expect(found(right, "wake-ups")).toMatchObject([{ level: "ok" }]);
      } finally {
        await bouncer.stop();
      }
    },
  );
});
