import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Coder, type EvolveEvent, type EvolveOptions, evolve } from "oracle-worker/evolution";
import { describe, expect, it } from "vitest";
import { TestRepository } from "./support/evolution.js";
import { useTestDatabase } from "./support/oracle.js";

// `evolve` as a function, with functions for its roles: a number in a file that is to grow.

const db = useTestDatabase();

const numberIn = (folder: string) => Number(readFileSync(join(folder, "number.txt"), "utf8"));

/** Adds the candidate's place in its generation. */
const adding: Coder = ({ spec }, { worktree }) => {
  const [, candidate] = (spec.iteration_hint ?? "").match(/\d+/g) ?? [];
  writeFileSync(join(worktree, "number.txt"), `${numberIn(worktree) + Number(candidate)}\n`);
  return { summary: `Add ${candidate}` };
};

function optionsFor(repository: TestRepository, change: Partial<EvolveOptions> = {}): EvolveOptions {
  return {
    repo: repository.folder,
    workspace: repository.workspace,
    goal: "Let the number grow",
    generations: 3,
    coder: adding,
    evaluator: (_request, { worktree }) => ({
      summary: "read",
      metrics: [{ name: "number", value: numberIn(worktree), unit: "units" }],
    }),
    ...change,
  };
}

async function withRepository(work: (repository: TestRepository) => Promise<void>): Promise<void> {
  const repository = new TestRepository({ "number.txt": "10\n" });
  try {
    await work(repository);
  } finally {
    repository.remove();
  }
}

describe("evolve(oracle, options)", { timeout: 240_000 }, () => {
  it("grows what is better when it is higher, an island at a time, and tells what happens", () =>
    withRepository(async (repository) => {
      const events: EvolveEvent[] = [];
      const evolved = await evolve(
        db.oracle,
        optionsFor(repository, { onEvent: (event) => events.push(event) }),
      );
      // The second island's first job adds 2 to its best, its second job 4 to one of its better ones.
      expect(evolved).toMatchObject({
        stopped: "generations",
        objective: { metric: "number", higherIsBetter: true },
        unit: "units",
        start: { commit: repository.base, value: 10 },
        best: { island: "island-2" },
        jobs: 12,
        succeeded: 12,
        failed: 0,
      });
      expect(evolved.best.value).toBeGreaterThanOrEqual(18);
      const shown = repository.git("show", "evolution/best:number.txt");
      expect(Number(shown)).toBe(evolved.best.value);
      expect(events[0]).toMatchObject({ event: "opened", base: repository.base });
      expect(events[1]).toMatchObject({ event: "started", start: { value: 10 } });
      expect(events.filter(({ event }) => event === "generation")).toHaveLength(3);
      const [job] = await db.sql(
        "SELECT input_payload AS spec FROM oracle.jobs WHERE job_type = 'evolve_commit' ORDER BY job_id LIMIT 1",
      );
      expect(job?.spec).toMatchObject({
        acceptance_criteria: ["number higher than 10 units"],
        iteration_hint: "generation 1, candidate 1 of 4",
      });
      expect(repository.worktrees()).toEqual([]);
    }));

  it("ends at once where the start is at the target already", () =>
    withRepository(async (repository) => {
      const evolved = await evolve(db.oracle, optionsFor(repository, { target: 10 }));
      expect(evolved).toMatchObject({ stopped: "target", jobs: 0, best: { commit: repository.base } });
    }));

  it("is one experiment, however many run it at the same time", () =>
    withRepository(async (repository) => {
      const run = () => evolve(db.oracle, optionsFor(repository));
      const [one, other] = await Promise.all([run(), run()]);
      expect(other).toEqual(one);
      expect(one?.jobs).toBe(12);
      expect(repository.branches().size).toBe(12);
      expect(repository.git("rev-parse", "evolution/best")).toBe(one?.best.commit);
    }));

  it("builds on no commit whose metric was not measured, and has that on record", () =>
    withRepository(async (repository) => {
      const evolved = await evolve(
        db.oracle,
        optionsFor(repository, {
          generations: 1,
          evaluator: (_request, { worktree }) => ({
            summary: "read",
            metrics: [{ name: numberIn(worktree) > 12 ? "another" : "number", value: numberIn(worktree) }],
          }),
        }),
      );
      expect(evolved).toMatchObject({ succeeded: 4, best: { value: 12 } });
      const rows = await db.sql(
        `SELECT ingestion_status, last_ingestion_error FROM oracle.evolution_jobs WHERE repository_id = $1
         ORDER BY ingestion_status`,
        [evolved.repositoryId],
      );
      const failed = {
        ingestion_status: "FAILED",
        last_ingestion_error: "The evaluator did not measure number.",
      };
      const ingested = { ingestion_status: "INGESTED", last_ingestion_error: null };
      expect(rows).toEqual([failed, failed, ingested, ingested]);
    }));

  it("ends with a typed error when the repository vanishes", () =>
    withRepository(async (repository) => {
      const vanishing = optionsFor(repository, {
        coder: (request, context) => {
          rmSync(join(repository.folder, ".git"), { recursive: true, force: true });
          return adding(request, context) as never;
        },
      });
      await expect(evolve(db.oracle, vanishing)).rejects.toMatchObject({ code: "EVOLUTION_REPOSITORY" });
    }));

  it("stops in order, and ends running jobs at no cost when it must", () =>
    withRepository(async (repository) => {
      const stop = new AbortController();
      const abort = new AbortController();
      const patient = optionsFor(repository, {
        signal: stop.signal,
        abortSignal: abort.signal,
        coder: (_request, { signal }) => {
          stop.abort();
          abort.abort();
          return new Promise((_resolve, reject) => {
            if (signal.aborted) reject(signal.reason);
            signal.addEventListener("abort", () => reject(signal.reason));
          });
        },
      });
      const evolved = await evolve(db.oracle, patient);
      expect(evolved).toMatchObject({
        stopped: "interrupted",
        generations: 0,
        jobs: 4,
        succeeded: 0,
        failed: 0,
      });
      const rows = await db.sql(
        `SELECT a.status, j.state FROM oracle.attempts a JOIN oracle.jobs j USING (job_id)
         WHERE j.job_type = 'evolve_commit' AND j.input_payload ->> 'repository' = $1`,
        [repository.folder],
      );
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row).toEqual({ status: "RELEASED", state: "PENDING" });
      expect(repository.worktrees()).toEqual([]);
      expect((await evolve(db.oracle, optionsFor(repository))).succeeded).toBe(12);
    }));

  it("outlives lost connections to the database", () =>
    withRepository(async (repository) => {
      const options = optionsFor(repository, {
        coder: async (request, context) => {
          await db.sql(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
          );
          return adding(request, context) as never;
        },
      });
      expect(await evolve(db.oracle, options)).toMatchObject({ stopped: "generations", succeeded: 12 });
      expect(repository.branches().size).toBe(12);
    }));

  it("says so when jobs wait for a person", () =>
    withRepository(async (repository) => {
      const stop = new AbortController();
      const stopping: Coder = (request, context) => {
        stop.abort();
        return adding(request, context) as never;
      };
      // More than can run at once, so that some are left.
      const many = { population: availableParallelism() + 2 };
      await evolve(db.oracle, optionsFor(repository, { ...many, coder: stopping, signal: stop.signal }));
      const [job] = await db.as(
        "worker",
        `UPDATE oracle.jobs SET hold_reason = 'awaiting approval'
         WHERE state = 'PENDING' AND input_payload ->> 'repository' = $1 RETURNING job_id`,
        [repository.folder],
      );
      await expect(evolve(db.oracle, optionsFor(repository))).rejects.toMatchObject({
        code: "JOB_PRECONDITION",
        message: expect.stringContaining("is held (awaiting approval)"),
      });
      expect(job).toBeDefined();
    }));

  it.each<[string, Partial<EvolveOptions>, string]>([
    ["repo", { repo: "" }, "repo"],
    ["goal", { goal: "" }, "goal"],
    ["population", { population: 0 }, "population"],
    ["islands", { population: 2, islands: 3 }, "population"],
    ["generations", { generations: 1.5 }, "generations"],
    ["target", { target: Number.NaN }, "target"],
    ["coder", { coder: undefined as never }, "coder"],
  ])("refuses a wrong %s by name", async (_what, change, field) => {
    const options = optionsFor({ folder: "/", workspace: "/tmp" } as TestRepository, change);
    await expect(evolve(db.oracle, options)).rejects.toMatchObject({ code: "INVALID_ARGUMENT", field });
  });
});
