import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineEvolution, type EvolutionOptions } from "oracle-worker/evolution";
import { afterAll } from "vitest";
import type { TestDatabase } from "./oracle.js";

/** A real repository in a folder of its own, gone with the file. */
export class TestRepository {
  readonly home = mkdtempSync(join(tmpdir(), "oracle-worker-evolution-"));
  readonly folder = join(this.home, "repository");
  readonly workspace = join(this.home, "workspace");
  readonly base: string;

  constructor(files: Record<string, string> = { "sum.js": "export const sum = (a, b) => b + a;\n" }) {
    mkdirSync(this.folder);
    this.git("init", "--quiet", "--initial-branch=main");
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message=Start");
    this.base = this.git("rev-parse", "HEAD");
  }

  git(...args: string[]): string {
    const who = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgSign=false"];
    const env = { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
    return execFileSync("git", [...who, ...args], {
      cwd: this.folder,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trimEnd();
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }

  /** Branches of jobs, with the commits they hold. */
  branches(): Map<string, string> {
    const lines = this.git(
      "for-each-ref",
      "--format=%(refname:lstrip=4) %(objectname)",
      "refs/heads/evolution/job/",
    );
    return new Map(
      lines
        .split("\n")
        .filter(Boolean)
        .map((line) => line.split(" ") as [string, string]),
    );
  }

  /** Worktrees besides the first, in git's eyes and in the workspace. */
  worktrees(): string[] {
    const inGit = join(this.folder, ".git", "worktrees");
    return [this.workspace, inGit].flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
  }

  /** The input of a job that starts from the first commit. */
  spec(changes: Record<string, unknown> = {}) {
    return {
      repository_id: "sums",
      repository: this.folder,
      base_commit_hash: this.base,
      goal: "Add faster",
      ...changes,
    };
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

export function useRepository(files?: Record<string, string>): TestRepository {
  const repository = new TestRepository(files);
  afterAll(() => repository.remove());
  return repository;
}

/** What the tables hold of one job. */
export async function storedOf(db: TestDatabase, jobId: string) {
  const one = async (table: string) =>
    (await db.sql(`SELECT * FROM oracle.${table} WHERE job_id = $1`, [jobId]))[0];
  const metrics = await db.sql(
    `SELECT m.name, m.value, m.unit, m.higher_is_better, m.details FROM oracle.metrics m
     JOIN oracle.commit_cards c USING (tenant_id, repository_id, commit_hash) WHERE c.job_id = $1 ORDER BY m.name`,
    [jobId],
  );
  const artifacts = await db.sql(
    `SELECT r.kind, a.name, a.artifact_id, a.reference FROM oracle.job_artifacts r
     JOIN oracle.artifacts a USING (artifact_id) WHERE r.job_id = $1 ORDER BY r.kind`,
    [jobId],
  );
  return { job: await one("evolution_jobs"), card: await one("commit_cards"), metrics, artifacts };
}

/** An answer of a coder that makes the sum better. */
export const edits = [
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

export const measured = {
  summary: "3 of 3 passed",
  metrics: [
    { name: "seconds", value: 2, unit: "s", higher_is_better: false, details: { runs: 3, best: 2 } },
    { name: "passed", value: 3 },
    { name: "seconds", value: 1.5, unit: "s", higher_is_better: false, details: { best: 1.5 } },
  ],
};

export const good: Pick<EvolutionOptions, "coder" | "evaluator"> = {
  coder: () => ({ summary: "The order of the sum", message: "Add in the order of the arguments", edits }),
  evaluator: () => measured,
};

/** One of the roles as a program. */
export const role = (...args: string[]): [string, ...string[]] => [
  fileURLToPath(new URL("evolution/role.mjs", import.meta.url)),
  ...args,
];

/** Runs jobs one at a time, each to its end in a queue and with a worker of its own. */
export function useEvolution(db: TestDatabase, repository: TestRepository) {
  return async (
    roles: Partial<EvolutionOptions>,
    changes: Record<string, unknown> = {},
    { maxAttempts = 1, of = repository, tenant = "default" } = {},
  ) => {
    const queue = `evolution-${Math.random()}`;
    const { workspace } = of;
    const backoff = { kind: "fixed", baseSeconds: 0.02 } as const;
    const jobs = [defineEvolution({ ...good, workspace, backoff, ...roles })];
    const worker = await db.worker({ jobs, queues: [queue] });
    const { id } = await db.oracle.enqueue("evolve_commit", of.spec(changes), { queue, maxAttempts, tenant });
    const job = await db.oracle.wait(id, { timeoutSeconds: 60 });
    await worker.stop();
    const result = (await db.oracle.result(id))?.payload as Record<string, unknown> | undefined;
    return { id, job, result };
  };
}
