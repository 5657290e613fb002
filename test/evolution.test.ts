import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EvolutionOptions } from "oracle-worker/evolution";
import { defineEvolution } from "oracle-worker/evolution";
import { describe, expect, it } from "vitest";
import { verifyJob } from "../dist/verify.js";
import { storedOf, TestRepository, useRepository } from "./support/evolution.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();
const repository = useRepository();

const edits = [
  "Here it is:",
  "sum.js",
  "```js",
  "<<<<<<< SEARCH",
  "export const sum = (a, b) => b + a;",
  "=======",
  "export const sum = (a, b) => a + b;",
  ">>>>>>> REPLACE",
  "```",
].join("\n");

const measured = {
  summary: "3 of 3 passed",
  metrics: [
    { name: "seconds", value: 2, unit: "s", higher_is_better: false, details: { runs: 3, best: 2 } },
    { name: "passed", value: 3 },
    { name: "seconds", value: 1.5, unit: "s", higher_is_better: false, details: { best: 1.5 } },
  ],
};

const good: Pick<EvolutionOptions, "coder" | "evaluator"> = {
  coder: () => ({ summary: "The order of the sum", message: "Add in the order of the arguments", edits }),
  evaluator: () => measured,
};

/** Runs one job to its end in a queue and with a worker of its own. */
async function run(
  roles: Partial<EvolutionOptions>,
  changes: Record<string, unknown> = {},
  { maxAttempts = 1, of = repository, tenant = "default" } = {},
) {
  const queue = `evolution-${Math.random()}`;
  const { workspace } = of;
  const backoff = { kind: "fixed", baseSeconds: 0.02 } as const;
  const worker = await db.worker({
    jobs: [defineEvolution({ ...good, workspace, backoff, ...roles })],
    queues: [queue],
  });
  const { id } = await db.oracle.enqueue("evolve_commit", of.spec(changes), { queue, maxAttempts, tenant });
  const job = await db.oracle.wait(id, { timeoutSeconds: 60 });
  await worker.stop();
  return { id, job, result: (await db.oracle.result(id))?.payload as Record<string, unknown> | undefined };
}

describe("an evolve_commit job", () => {
  it("leaves a commit on its branch, and its card, metrics and artifacts with the result", async () => {
    const { id, job, result } = await run(
      { planner: ({ files, spec }) => ({ summary: `${spec.goal}: ${files.join()}`, details: "by hand" }) },
      { island_id: "north", experiment_id: "first", notes: ["keep it short"] },
    );
    expect(job).toMatchObject({ state: "SUCCEEDED", error: null });
    const commit = repository.git("rev-parse", `evolution/job/${id}`);
    expect(result).toEqual({
      commit_hash: commit,
      branch: `evolution/job/${id}`,
      base_commit_hash: repository.base,
      subject: "Add in the order of the arguments",
      plan_summary: "Add faster: sum.js",
      evaluation_summary: "3 of 3 passed",
      metrics: [
        { name: "passed", value: 3 },
        { name: "seconds", value: 1.5 },
      ],
    });
    expect(repository.git("show", `${commit}:sum.js`)).toBe("export const sum = (a, b) => a + b;");
    expect(repository.git("rev-parse", `${commit}^`)).toBe(repository.base);
    expect(repository.git("show", "-s", "--format=%an %B", commit)).toBe(
      `oracle-worker Add in the order of the arguments\n\nThe order of the sum\n\nEvolution-Job: ${id}\n`.trimEnd(),
    );
    const stored = await storedOf(db, id);
    expect(stored.job).toMatchObject({
      repository_id: "sums",
      island_id: "north",
      experiment_id: "first",
      base_commit_hash: repository.base,
      result_commit_hash: commit,
      plan_summary: "Add faster: sum.js",
      ingestion_status: "PENDING",
      ingestion_attempts: 0,
      worker: { application: "oracle-worker", attempt_no: 1, pid: process.pid },
    });
    expect(stored.card).toMatchObject({
      commit_hash: commit,
      parent_commit_hash: repository.base,
      island_id: "north",
      subject: "Add in the order of the arguments",
      change_summary: "The order of the sum",
      evaluation_summary: "3 of 3 passed",
      key_files: ["sum.js"],
      highlights: [{ path: "sum.js", added: 1, deleted: 1 }],
    });
    expect(stored.metrics).toEqual([
      { name: "passed", value: 3, unit: null, higher_is_better: true, details: null },
      { name: "seconds", value: 1.5, unit: "s", higher_is_better: false, details: { runs: 3, best: 1.5 } },
    ]);
    expect(stored.artifacts.map(({ kind }) => kind)).toEqual([
      "evaluation_log",
      "plan",
      "prompt",
      "raw_output",
    ]);
    // On disk, not in the rows.
    for (const { reference } of stored.artifacts) expect(reference).not.toBeNull();
    expect(repository.worktrees()).toEqual([]);
    expect((await verifyJob(db.oracle, id)).checks.filter(({ matches }) => !matches)).toEqual([]);
  });
});
