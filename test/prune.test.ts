import { mkdtempSync, readdirSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createWorker, defineJob, TerminalError } from "oracle-worker";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { readSettings } from "../dist/core/settings.js";
import { type PruneOptions, prune, pruneNext } from "../dist/store/prune.js";
import { vacuum } from "../dist/store/vacuum.js";
import { runToEnd } from "./support/cli.js";
import { echo, flaky } from "./support/jobs.js";
import { claimFrom, workerDatabase } from "./support/leases.js";
import { useLogins } from "./support/logins.js";
import { until, useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const login = useLogins(db);
const DAY = 86_400;
const FIRST = "00000000-0000-0000-0000-000000000000";
const month: PruneOptions = { olderThanSeconds: 30 * DAY, keyProtectionSeconds: 30 * DAY };

/** Tables with a row per job, or more. */
const tables = [
  "jobs",
  "past_attempts",
  "attempt_reports",
  "attempt_logs",
  "results",
  "artifacts",
  "steps",
  "effects",
  "timers",
  "dead_jobs",
  "ready_jobs",
];

const rich = defineJob({
  type: "rich",
  input: z.object({ fail: z.boolean() }),
  output: z.any(),
  async run({ input, step, effect, log, artifact, progress }) {
    log.info("begun");
    progress(0.5);
    await artifact("report.json", { pages: 3 });
    await step("first", () => 1);
    await effect({ key: "mail", kind: "idempotent", request: { to: "x" } }, async () => ({ sent: true }));
    if (input.fail) throw new TerminalError("no");
    return { done: true };
  },
});

/** Lets jobs have finished some days ago, which nothing but a superuser without triggers can. */
async function age(days: number, ...ids: string[]): Promise<void> {
  const list = ids.map((id) => `'${id}'`).join(", ");
  await db.sql(
    `SET session_replication_role = replica;
     UPDATE oracle.jobs SET completed_at = completed_at - interval '${days} days' WHERE job_id IN (${list});
     RESET session_replication_role`,
  );
}

/** The files of an artifact folder. */
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const left = async (id: string) => (await db.oracle.get(id)) !== undefined;

/** A finished job of its own queue, so that other tests do not meet it. */
async function finished(options: Parameters<typeof db.oracle.enqueue>[2] = {}, days = 40): Promise<string> {
  const { id } = await db.oracle.enqueue(echo, { n: Math.random() }, { queue: "pruned", ...options });
  await until("its end", async () => (await db.oracle.get(id))?.state === "SUCCEEDED");
  await age(days, id);
  return id;
}

beforeAll(async () => {
  await db.worker({ jobs: [echo, flaky, rich], queues: ["pruned"] });
});

describe("pruning", () => {
  it("takes everything that hangs on a job, and counts without deleting when asked to", async () => {
    const deadline = 3600;
    const ids: string[] = [];
    for (const fail of [false, true]) {
      const job = await db.oracle.enqueue(rich, { fail }, { queue: "pruned", deadline, maxAttempts: 1 });
      await until("its end", async () => (await db.oracle.get(job.id))?.completedAt !== null);
      ids.push(job.id);
    }
    await age(31, ...ids);
    const rows = async () => {
      const counts: Record<string, number> = {};
      for (const table of tables) {
        const [row] = await db.sql(`SELECT count(*)::int AS n FROM oracle.${table} WHERE job_id = ANY ($1)`, [
          ids,
        ]);
        counts[table] = row?.n;
      }
      return counts;
    };
    const before = await rows();
    for (const table of tables.slice(0, -1)) expect(before[table], table).toBeGreaterThan(0);
    expect(await prune(db.oracle.db, { ...month, dryRun: true })).toBe(2);
    expect(await rows()).toEqual(before);
    expect(await prune(db.oracle.db, month)).toBe(2);
    expect(Object.values(await rows()).every((count) => count === 0)).toBe(true);
  });

  it("leaves what is young, of another tenant or in another state", async () => {
    const young = await finished({}, 29);
    const other = await finished({ tenant: "team-b" });
    const failed = await db.oracle.enqueue(flaky, { failures: 9, how: "terminal" }, { queue: "pruned" });
    await until("its failure", async () => (await failed.state()) === "FAILED_TERMINAL");
    await age(40, failed.id);
    expect(await prune(db.oracle.db, { ...month, state: "SUCCEEDED", tenant: "default" })).toBe(0);
    expect(await prune(db.oracle.db, { ...month, tenant: "team-b" })).toBe(1);
    expect(await left(other)).toBe(false);
    expect(await prune(db.oracle.db, { ...month, state: "FAILED_TERMINAL" })).toBe(1);
    expect(await left(failed.id)).toBe(false);
    expect(await left(young)).toBe(true);
  });

  it("keeps a key's job for as long as keys are protected", async () => {
    const key = "order-7";
    const id = await finished({ key }, 10);
    const week = { olderThanSeconds: 7 * DAY, keyProtectionSeconds: 30 * DAY };
    await prune(db.oracle.db, week);
    expect(await left(id)).toBe(true);
    await prune(db.oracle.db, { ...week, keyProtectionSeconds: 9 * DAY });
    expect(await left(id)).toBe(false);
    expect((await db.oracle.enqueue(echo, { n: 1 }, { queue: "elsewhere", key })).created).toBe(true);
  });

  it("leaves what waits, runs or is held, however old", async () => {
    const waiting = await db.oracle.enqueue(echo, { n: 1 }, { queue: "nobody" });
    const held = await db.oracle.enqueue(echo, { n: 2 }, { queue: "nobody", priority: -1 });
    await db.sql("UPDATE oracle.jobs SET hold_reason = 'by hand' WHERE job_id = $1", [held.id]);
    const database = workerDatabase(db);
    const running = await db.oracle.enqueue(echo, { n: 3 }, { queue: "claimed" });
    await claimFrom(database, "claimed");
    await database.close();
    await db.sql(
      "UPDATE oracle.jobs SET created_at = created_at - interval '1 year' WHERE job_id = ANY ($1)",
      [[waiting.id, held.id, running.id]],
    );
    await prune(db.oracle.db, { olderThanSeconds: 0, keyProtectionSeconds: 0 });
    for (const { id } of [waiting, held, running]) expect(await left(id)).toBe(true);
  });

  it("leaves a job with an effect in doubt", async () => {
    const id = await finished();
    await db.sql(
      `INSERT INTO oracle.effects (job_id, effect_id, seq, attempt_no, kind, state, tenant_id, name, request_hash,
         request, dispatched_at, in_doubt_at)
       VALUES ($1, gen_random_uuid(), 1, 1, 'unsafe', 'IN_DOUBT', 'default', 'pay', 'h', '{}', clock_timestamp(),
         clock_timestamp())`,
      [id],
    );
    await prune(db.oracle.db, month);
    expect(await left(id)).toBe(true);
    await db.sql("DELETE FROM oracle.effects WHERE job_id = $1", [id]);
    await prune(db.oracle.db, month);
    expect(await left(id)).toBe(false);
  });

  it("keeps a replay's origin until the replay has finished", async () => {
    const origin = await finished();
    const replay = await db.oracle.replay(origin, { n: 1 });
    await db.oracle.cancel(replay.id).catch(() => {});
    await until("its end", async () => (await db.oracle.get(replay.id))?.completedAt !== null);
    const unfinished = await db.oracle.enqueue(echo, { n: 1 }, { queue: "nobody" });
    await db.sql("UPDATE oracle.jobs SET replay_of = $1 WHERE job_id = $2", [origin, unfinished.id]);
    await prune(db.oracle.db, month);
    expect(await left(origin)).toBe(true);
    await db.oracle.cancel(unfinished.id);
    await prune(db.oracle.db, month);
    expect(await left(origin)).toBe(false);
  });

  it("leaves a job that somebody is about to change, and lets a replay that comes first win", async () => {
    const origin = await finished();
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("BEGIN");
    const replay = await db.oracle.enqueue("echo", { n: 1 }, { queue: "nobody", client });
    await client.query("SELECT oracle.check_replays(ARRAY['default'], ARRAY[$1]::uuid[])", [origin]);
    await client.query("UPDATE oracle.jobs SET replay_of = $1 WHERE job_id = $2", [origin, replay.id]);
    await prune(db.oracle.db, month);
    expect(await left(origin)).toBe(true);
    await client.query("COMMIT");
    await client.end();
    await prune(db.oracle.db, month);
    expect(await left(origin)).toBe(true);
  });
});

describe("who may prune", () => {
  it("no role deletes rows itself, and only workers call the function", async () => {
    const id = await finished();
    for (const role of ["worker", "server", "tenant"] as const)
      for (const table of ["jobs", "results", "past_attempts"])
        await expect(
          db.as(role, `DELETE FROM oracle.${table} WHERE job_id = $1`, [id]),
        ).rejects.toMatchObject({
          code: "42501",
        });
    await expect(db.as("worker", "UPDATE oracle.retention SET next_pass_at = now()")).rejects.toThrow();
    const call =
      "SELECT * FROM oracle.prune_jobs($1, 10, 0, 0, ARRAY['SUCCEEDED']::oracle.oracle_job_state[], NULL, false, false)";
    for (const role of ["server", "tenant"] as const)
      await expect(db.as(role, call, [FIRST])).rejects.toMatchObject({ code: "42501" });
    const tenant = await (await login({ tenantId: "team-a" })).connect();
    await expect(tenant.query(call, [FIRST])).rejects.toMatchObject({ code: "42501" });
    expect(await left(id)).toBe(true);
    const unfinished = call.replace("'SUCCEEDED'", "'PENDING', 'RUNNING'");
    expect((await db.as("worker", unfinished, [FIRST]))[0]?.deleted).toBe(0);
  });
});

describe("the policy RETENTION", () => {
  it("is kept by one worker at a time while they work, and takes stored bytes along", async () => {
    const folder = mkdtempSync(join(tmpdir(), "oracle-worker-artifacts-"));
    const settings = {
      DATABASE_URL: db.url,
      RETENTION: "30d",
      KEY_PROTECTION: "0",
      ARTIFACTS: `file:${folder}`,
    };
    const oracle = await connect({ settings: readSettings(settings) });
    const bytes = defineJob({
      type: "bytes",
      input: z.any(),
      output: z.any(),
      run: ({ artifact }) => artifact("data.bin", Buffer.alloc(1000, 7)).then(() => ({})),
    });
    const pruned: number[] = [];
    const onEvent = (event: { event: string; jobs?: number }) => {
      if (event.event === "jobs.pruned") pruned.push(event.jobs as number);
    };
    const maker = await createWorker(oracle, { jobs: [bytes], queues: ["bytes"], pollSeconds: 0.1, onEvent });
    const job = await oracle.enqueue(bytes, {}, { queue: "bytes" });
    await job.result({ timeoutSeconds: 20 });
    const ids = [job.id];
    for (let n = 0; n < 5; n++) ids.push(await finished());
    await age(40, job.id);
    for (const file of filesIn(folder)) utimesSync(file, 0, 0);
    await db.sql("UPDATE oracle.retention SET next_pass_at = clock_timestamp(), position = $1", [FIRST]);
    const second = await createWorker(oracle, {
      jobs: [echo],
      queues: ["bytes-2"],
      pollSeconds: 0.1,
      onEvent,
    });
    await until("the end of the old jobs", async () => !(await left(job.id)), 25_000);
    await until("the word of it", async () => pruned.length > 0);
    expect(pruned.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(ids.length);
    for (const id of ids) expect(await left(id)).toBe(false);
    await until("the end of its bytes", async () => filesIn(folder).length === 0);
    await Promise.all([maker.stop(), second.stop()]);
    await oracle.close();
  });
});

describe("a pass", () => {
  it("ends although others become old as fast as it looks at them", async () => {
    await db.sql("UPDATE oracle.retention SET next_pass_at = clock_timestamp(), position = $1", [FIRST]);
    for (let n = 0; n < 5; n++) await finished({}, 0);
    let young: string[] = [];
    let deleted: number | undefined;
    for (let step = 0; step < 40 && deleted === undefined; step++) {
      const [row] = await db.as("worker", "SELECT * FROM oracle.prune_step(2, 0, 0, 0)");
      deleted = row?.pass_deleted ?? undefined;
      if (deleted === undefined) young = [...young, await finished({}, 0), await finished({}, 0)];
    }
    expect(Number(deleted)).toBeGreaterThanOrEqual(5);
    // What became old meanwhile is the next pass's.
    for (const id of young) expect(await left(id)).toBe(true);
  });
});

describe("a tenant's own retention", () => {
  it("goes before everybody's, in both directions, and holds without it", async () => {
    await db.oracle.addTenant("brief", { retentionSeconds: 10 * DAY });
    await db.oracle.addTenant("long", { retentionSeconds: 100 * DAY });
    const jobs = {
      brief: await finished({ tenant: "brief" }, 20),
      young: await finished({ tenant: "brief" }, 5),
      long: await finished({ tenant: "long" }, 60),
      plain: await finished({}, 60),
    };
    const store = workerDatabase(db);
    const pass = async (retentionSeconds: number | undefined) => {
      const policy = { retentionSeconds, keyProtectionSeconds: 0, pauseSeconds: 0 };
      await db.sql("UPDATE oracle.retention SET next_pass_at = clock_timestamp(), position = $1", [FIRST]);
      await until(
        "the end of a pass",
        async () => (await pruneNext(store, policy))?.passDeleted !== undefined,
      );
    };
    await pass(undefined);
    expect(await Promise.all(Object.values(jobs).map(left))).toEqual([false, true, true, true]);
    await pass(30 * DAY);
    expect(await Promise.all(Object.values(jobs).map(left))).toEqual([false, true, true, false]);
    await store.close();
  });
});

describe("the command prune", () => {
  const env = () => ({ DATABASE_URL: db.url });

  it("deletes and counts", async () => {
    const id = await finished();
    const dry = await runToEnd(["prune", "--older-than", "30d", "--dry-run"], { env: env() });
    expect(dry.json).toMatchObject({ dry_run: true });
    expect(dry.json.jobs).toBeGreaterThanOrEqual(1);
    expect(await left(id)).toBe(true);
    const done = await runToEnd(["prune", "--state", "succeeded"], { env: { ...env(), RETENTION: "30d" } });
    expect(done).toMatchObject({ code: 0 });
    expect(await left(id)).toBe(false);
  });

  it("refuses to guess what is old, and states that are not final", async () => {
    expect((await runToEnd(["prune"], { env: env() })).error).toMatchObject({ field: "--older-than" });
    const wrong = await runToEnd(["prune", "--older-than", "1d", "--state", "RUNNING"], { env: env() });
    expect(wrong).toMatchObject({ code: 2, error: { field: "--state" } });
  });
});

// Last: their young jobs are in the way of the others.
describe("many young jobs", () => {
  it("are jumped over, and old ones around them found", async () => {
    const [row] = await db.sql("SELECT job_id FROM oracle.enqueue('echo', '{\"n\": 1}', queue => 'pruned')");
    const random = row?.job_id as string;
    await until("its end", async () => (await db.oracle.get(random))?.state === "SUCCEEDED");
    await age(40, random);
    // More than a batch, so that the young are jumped over.
    const young = await db.oracle.enqueueMany(
      "echo",
      Array.from({ length: 2500 }, (_, n) => ({ n })),
      { queue: "nobody" },
    );
    const old = await finished();
    await prune(db.oracle.db, month);
    expect(await left(random)).toBe(false);
    expect(await left(young[0]?.id as string)).toBe(true);
    // Its id is as young as the others'; it goes when the ids' time has passed too.
    await prune(db.oracle.db, { olderThanSeconds: 0, keyProtectionSeconds: 0 });
    expect(await left(old)).toBe(false);
  });
});

describe("a backlog", () => {
  it("of several batches goes batch by batch, and each says how many it took", async () => {
    const store = workerDatabase(db);
    const handles = await db.oracle.enqueueMany(
      echo,
      Array.from({ length: 4500 }, (_, n) => ({ n })),
      { queue: "backlog" },
    );
    const worker = await db.worker({ jobs: [echo], queues: ["backlog"], concurrency: 50 });
    await worker.drained();
    await worker.stop();
    const last = handles.at(-1)?.id as string;
    await db.sql("UPDATE oracle.retention SET next_pass_at = clock_timestamp(), position = $1, deleted = 0", [
      FIRST,
    ]);
    const steps: { deleted: number; passDeleted: number | undefined }[] = [];
    await until("the end of a pass", async () => {
      const step = await pruneNext(store, {
        retentionSeconds: 0,
        keyProtectionSeconds: 0,
        pauseSeconds: 3600,
      });
      if (step) steps.push(step);
      return step?.passDeleted !== undefined;
    });
    const deleted = steps.reduce((sum, step) => sum + step.deleted, 0);
    expect(deleted).toBeGreaterThanOrEqual(4500);
    expect(steps.at(-1)?.passDeleted).toBe(deleted);
    expect(Math.max(...steps.map((step) => step.deleted))).toBeLessThanOrEqual(2000);
    expect(await left(last)).toBe(false);
    // What is left of it by name: nothing.
    for (const table of tables) {
      const [row] = await db.sql(`SELECT count(*)::int AS n FROM oracle.${table} WHERE job_id = $1`, [last]);
      expect(row?.n, table).toBe(0);
    }
    await store.close();
  });

  it("of dead rows is vacuumed by workers, where the server knows such a right", async () => {
    const store = workerDatabase(db);
    // Nobody else is to be faster.
    await db.sql("ALTER TABLE oracle.timers SET (autovacuum_enabled = false)");
    const later = Array.from({ length: 6000 }, (_, n) => ({ n }));
    await db.oracle.enqueueMany("echo", later, { queue: "nobody", runAfter: 3600 });
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query("DELETE FROM oracle.timers");
    await client.end();
    const dead = async () => {
      const [row] = await db.sql(
        "SELECT n_dead_tup::int AS n FROM pg_stat_user_tables WHERE schemaname = 'oracle' AND relname = 'timers'",
      );
      return row?.n as number;
    };
    await until("the statistics", async () => (await dead()) > 5000);
    const [server] = await db.sql("SELECT current_setting('server_version_num')::int >= 170000 AS knows");
    expect((await vacuum(store, "by jobs")).includes("timers")).toBe(server?.knows);
    if (server?.knows) await until("fewer dead rows", async () => (await dead()) < 5000);
    expect(await vacuum(store, "by jobs")).not.toContain(server?.knows ? "timers" : "jobs");
    await store.close();
  });
});
