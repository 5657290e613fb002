import { randomUUID } from "node:crypto";
import { type EnqueueOptions, JobLockConflict, JobPreconditionError } from "oracle-worker";
import { EvolutionJobStore, EvolutionWorkerError, type LockedEvolutionJob } from "oracle-worker/evolution";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { isLockConflict } from "../dist/store/acquire.js";
import { findCards, listCards } from "../dist/store/evolution-cards.js";
import { markIngested, markIngestionFailed } from "../dist/store/evolution-ingest.js";
import { prune } from "../dist/store/prune.js";
import { storedOf, useRepository } from "./support/evolution.js";
import { expireLease } from "./support/leases.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const repository = useRepository();

/** A queue that no worker serves. */
async function submit(changes: Record<string, unknown> = {}, options: EnqueueOptions = {}): Promise<string> {
  const spec = repository.spec(changes);
  return (await db.oracle.enqueue("evolve_commit", spec, { queue: "by-hand", ...options })).id;
}

const open = () => new EvolutionJobStore(db.oracle);

/** A commit that a program made by itself. */
function commit(text: string): string {
  repository.write("sum.js", text);
  repository.git("commit", "--quiet", "--all", `--message=${text}`);
  const hash = repository.git("rev-parse", "HEAD");
  repository.git("reset", "--quiet", "--hard", repository.base);
  return hash;
}

const plan = { summary: "Try it" };
const coding = { summary: "Tried" };
const evaluation = {
  summary: "Fine",
  metrics: [
    { name: "speed", value: 1, higher_is_better: true },
    { name: "speed", value: 2, higher_is_better: true },
  ],
};

async function succeed(changes: Record<string, unknown> = {}, options: EnqueueOptions = {}) {
  const store = open();
  const job = await store.startJob(await submit(changes, options));
  const hash = commit(`${randomUUID()}\n`);
  await store.persistSuccess(job, plan, coding, evaluation, hash, "Tried it\n\nat length");
  return { id: job.jobId, hash };
}

describe("startJob", () => {
  it("returns a frozen snapshot with the whole spec, and the job runs", async () => {
    const id = await submit({ island_id: "north", notes: ["a"] });
    const job = await open().startJob(id);
    expect(job).toMatchObject({
      jobId: id,
      attemptNo: 1,
      input: { base_commit_hash: repository.base, island_id: "north", notes: ["a"], tags: [] },
    });
    expect(() => {
      (job as { jobId: string }).jobId = "another";
    }).toThrow();
    expect(await db.oracle.get(id)).toMatchObject({ state: "RUNNING", error: null });
  });

  it("is a JobLockConflict while another session holds the row, known by its SQLSTATE", async () => {
    const id = await submit();
    const other = new pg.Client(db.url);
    await other.connect();
    await other.query("BEGIN");
    await other.query("SELECT FROM oracle.jobs WHERE job_id = $1 FOR UPDATE", [id]);
    await expect(open().startJob(id)).rejects.toThrow(JobLockConflict);
    await other.query("ROLLBACK");
    await other.end();
    expect((await open().startJob(id)).jobId).toBe(id);
  });

  it("knows a lock conflict also by its words, where the code was lost on the way", () => {
    expect(isLockConflict(Object.assign(new Error("x"), { code: "55P03" }))).toBe(true);
    expect(isLockConflict(new Error('could not obtain lock on row in relation "jobs"'))).toBe(true);
    expect(isLockConflict(new Error("database is locked"))).toBe(true);
    expect(isLockConflict(new Error("syntax error"))).toBe(false);
  });

  const unknown = "f".repeat(40);
  it.each<[string, () => Promise<string>, string]>([
    ["does not exist", async () => randomUUID(), "does not exist"],
    [
      "is of another type",
      async () => (await db.oracle.enqueue("echo", {}, { queue: "by-hand" })).id,
      "type echo",
    ],
    ["has no base commit", () => submit({ base_commit_hash: undefined }), "base_commit_hash"],
    ["has an unknown base commit", () => submit({ base_commit_hash: unknown }), unknown],
    [
      "runs already",
      async () => {
        const id = await submit();
        await open().startJob(id);
        return id;
      },
      "is leased",
    ],
    [
      "has ended",
      async () => {
        const id = await submit();
        await db.oracle.cancel(id);
        return id;
      },
      "CANCELLED",
    ],
  ])("is a JobPreconditionError when the job %s", async (_what, make, message) => {
    const id = await make();
    const started = open().startJob(id);
    await expect(started).rejects.toThrow(JobPreconditionError);
    await expect(started).rejects.toThrow(message);
  });

  it("is an EvolutionWorkerError when the repository is gone", async () => {
    const id = await submit({ repository: "/nowhere" });
    await expect(open().startJob(id)).rejects.toThrow(EvolutionWorkerError);
    expect((await db.oracle.get(id))?.state).toBe("PENDING");
  });
});

describe("persistSuccess", () => {
  it("stores result, card, metrics and artifacts, and clears the last error", async () => {
    const { id, hash } = await succeed({ island_id: "west", experiment_id: "persisted" });
    expect(await db.oracle.get(id)).toMatchObject({ state: "SUCCEEDED", error: null });
    expect((await db.oracle.result(id))?.payload).toMatchObject({ commit_hash: hash, subject: "Tried it" });
    const stored = await storedOf(db, id);
    expect(stored.job).toMatchObject({
      result_commit_hash: hash,
      plan_summary: "Try it",
      ingestion_status: "PENDING",
    });
    expect(stored.card).toMatchObject({ commit_hash: hash, subject: "Tried it", key_files: ["sum.js"] });
    expect(stored.metrics).toMatchObject([{ name: "speed", value: 2 }]);
    expect(stored.artifacts.map(({ kind }) => kind)).toEqual(["evaluation_log", "plan", "raw_output"]);
  });

  it("stores nothing for an attempt that has lost its job", async () => {
    const store = open();
    const job = await store.startJob(await submit());
    await expireLease(db, job.jobId);
    const winner = await open().startJob(job.jobId);
    const hash = commit("late\n");
    const late = store.persistSuccess(job, plan, coding, evaluation, hash, "Late");
    await expect(late).rejects.toThrow(
      expect.objectContaining({ code: expect.stringMatching(/LEASE_LOST|EVOLUTION_STORE/) }),
    );
    expect((await storedOf(db, job.jobId)).card).toBeUndefined();
    expect((await db.oracle.get(job.jobId))?.currentAttemptId).toBe(winner.attemptId);
  });

  it("refuses a commit that has a card already, and one that the repository does not have", async () => {
    const first = await succeed();
    const store = open();
    const job = await store.startJob(await submit());
    const absent = store.persistSuccess(job, plan, coding, evaluation, "e".repeat(40), "Absent");
    await expect(absent).rejects.toThrow(expect.objectContaining({ code: "EVOLUTION_REPOSITORY" }));
    const twice = store.persistSuccess(job, plan, coding, evaluation, first.hash, "Twice");
    await expect(twice).rejects.toThrow(
      expect.objectContaining({ code: "EVOLUTION_STORE", message: expect.stringContaining("commit_cards") }),
    );
    expect((await db.oracle.get(job.jobId))?.state).not.toBe("SUCCEEDED");
    expect((await storedOf(db, job.jobId)).job).toBeUndefined();
  });
});

describe("markJobFailed", () => {
  const stateOf = async (id: string) => {
    const job = await db.oracle.get(id);
    return [job?.state, job?.error?.message];
  };

  it("ends a job that waits, and one that this store has started", async () => {
    const store = open();
    const waiting = await submit();
    expect(await store.markJobFailed(waiting, "no coder")).toBe(true);
    expect(await stateOf(waiting)).toEqual(["FAILED_TERMINAL", "no coder"]);
    const started = await store.startJob(await submit());
    expect(await store.markJobFailed(started.jobId, "it broke")).toBe(true);
    expect(await stateOf(started.jobId)).toEqual(["FAILED_TERMINAL", "it broke"]);
    expect((await db.oracle.attempts(started.jobId))[0]?.status).toBe("FAILED");
  });

  it("changes nothing for a job that is unknown, has ended, or runs for somebody else", async () => {
    const store = open();
    expect(await store.markJobFailed(randomUUID(), "x")).toBe(false);
    const { id: succeeded } = await succeed();
    const cancelled = await submit();
    await db.oracle.cancel(cancelled);
    const failed = await submit();
    await store.markJobFailed(failed, "first");
    const others = await open().startJob(await submit());
    for (const id of [succeeded, cancelled, failed, others.jobId]) {
      expect(await store.markJobFailed(id, "second")).toBe(false);
    }
    expect(await stateOf(succeeded)).toEqual(["SUCCEEDED", undefined]);
    expect(await stateOf(cancelled)).toEqual(["CANCELLED", undefined]);
    expect(await stateOf(failed)).toEqual(["FAILED_TERMINAL", "first"]);
    expect(await stateOf(others.jobId)).toEqual(["RUNNING", undefined]);
  });

  it("does not fail another's attempt after its own has lost the job", async () => {
    const store = open();
    const job: LockedEvolutionJob = await store.startJob(await submit());
    await expireLease(db, job.jobId);
    await open().startJob(job.jobId);
    expect(await store.markJobFailed(job.jobId, "too late")).toBe(false);
    expect((await stateOf(job.jobId))[0]).toBe("RUNNING");
  });

  it("swallows and tells what the database says", async () => {
    const said: string[] = [];
    const store = new EvolutionJobStore(db.oracle, { log: (message) => said.push(message) });
    expect(await store.markJobFailed("no id at all", "x")).toBe(false);
    expect(said).toEqual([expect.stringContaining("cannot record the failure of job no id at all")]);
  });
});

describe("cards", () => {
  it("are listed by repository and experiment, oldest first, with metrics and whether they were taken notice of", async () => {
    const about = { repository_id: "listed" };
    const one = await succeed({ ...about, experiment_id: "a" });
    const two = await succeed({ ...about, experiment_id: "b" });
    await succeed({ ...about, experiment_id: "a" }, { tenant: "somebody else" });
    const filter = { tenantId: "default", repositoryId: "listed" };
    const all = await listCards(db.oracle.db, filter);
    expect(all.map(({ job_id }) => job_id)).toEqual([one.id, two.id]);
    expect(all[0]).toMatchObject({
      commit_hash: one.hash,
      parent_commit_hash: repository.base,
      metrics: [{ name: "speed", value: 2, unit: null, higher_is_better: true, details: null }],
      ingestion_status: "PENDING",
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(await listCards(db.oracle.db, { ...filter, experimentId: "b" })).toMatchObject([
      { job_id: two.id },
    ]);
    const found = await findCards(db.oracle.db, filter, [two.hash, "f".repeat(40), one.hash]);
    expect(found.map(({ job_id }) => job_id)).toEqual([two.id, one.id]);
  });

  it("are taken notice of once", async () => {
    const { id } = await succeed();
    expect(await markIngestionFailed(db.oracle.db, id, "disk full")).toBe(true);
    expect((await storedOf(db, id)).job).toMatchObject({
      ingestion_status: "FAILED",
      ingestion_attempts: 1,
      last_ingestion_error: "disk full",
      ingested_at: null,
    });
    expect(await markIngested(db.oracle.db, [id, randomUUID()])).toEqual([id]);
    expect(await markIngested(db.oracle.db, [id])).toEqual([]);
    expect(await markIngestionFailed(db.oracle.db, id, "too late")).toBe(false);
    expect((await storedOf(db, id)).job).toMatchObject({
      ingestion_status: "INGESTED",
      ingestion_attempts: 2,
      last_ingestion_error: null,
    });
  });
});

describe("the tables", () => {
  const tables = ["evolution_jobs", "commit_cards", "metrics", "job_artifacts"];

  it("show a tenant its own rows, and let nobody write them", async () => {
    await succeed({}, { tenant: "mine" });
    await succeed({}, { tenant: "yours" });
    for (const table of tables) {
      const seen = await db.oracle.db.asTenant("mine", (own) =>
        own.query({ name: `see-${table}`, text: `SELECT DISTINCT tenant_id FROM oracle.${table}` }, []),
      );
      expect(seen, table).toEqual([{ tenant_id: "mine" }]);
      for (const role of ["worker", "server", "tenant"] as const) {
        for (const sql of [`DELETE FROM oracle.${table}`, `UPDATE oracle.${table} SET tenant_id = 'thief'`]) {
          await expect(db.as(role, sql), `${role}: ${sql}`).rejects.toThrow("permission denied");
        }
        const insert = `INSERT INTO oracle.${table} SELECT * FROM oracle.${table}`;
        await expect(db.as(role, insert), `${role}: ${insert}`).rejects.toThrow("permission denied");
      }
    }
    await expect(db.sql("UPDATE oracle.commit_cards SET subject = 'x'")).rejects.toThrow("never changes");
    await expect(db.sql("UPDATE oracle.metrics SET value = 0")).rejects.toThrow("never changes");
  });

  it("take no card for a job that the attempt does not hold, or of another type", async () => {
    const persist = "SELECT oracle.persist_evolution($1, $2, $3) AS stored";
    const job = await open().startJob(await submit());
    const record = { commit_hash: repository.base, worker: {}, metrics: [], artifacts: [] };
    expect(await db.as("worker", persist, [job.jobId, randomUUID(), record])).toEqual([{ stored: false }]);
    const { id } = await db.oracle.enqueue("echo", {}, { queue: "by-hand" });
    const other = await db.oracle.startJob(id, "hand");
    expect(await db.as("worker", persist, [id, other.attemptId, record])).toEqual([{ stored: false }]);
    await expect(db.as("tenant", persist, [id, other.attemptId, record])).rejects.toThrow(
      "permission denied",
    );
  });

  it("forget a job's rows with the job", async () => {
    const { id } = await succeed();
    const kept = await succeed();
    await db.sql(`SET session_replication_role = replica;
      UPDATE oracle.jobs SET completed_at = completed_at - interval '90 days' WHERE job_id = '${id}';
      RESET session_replication_role`);
    await prune(db.oracle.db, { olderThanSeconds: 3600, keyProtectionSeconds: 3600 });
    expect(await storedOf(db, id)).toEqual({ job: undefined, card: undefined, metrics: [], artifacts: [] });
    expect((await storedOf(db, kept.id)).card?.job_id).toBe(kept.id);
  });
});
