import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const example = (name: string) => fileURLToPath(new URL(`../../examples/evolution/${name}`, import.meta.url));

export interface ExampleRepository {
  /** Where commands are typed; the repository is below. */
  folder: string;
  repo: string;
  git(...args: string[]): string;
  /** `evolve` on it, as make.mjs prints it, with more flags. */
  evolve(...flags: string[]): string[];
  /** What the evaluator measures at a commit, here and now. */
  measure(commit: string): { name: string; value: number }[];
}

const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** The repository of examples/evolution/, made by its script in a new folder. */
export function makeExampleRepository(): ExampleRepository {
  const folder = mkdtempSync(join(tmpdir(), "oracle-worker-evolve-"));
  chmodSync(folder, 0o755);
  made.push(folder);
  const repo = join(folder, "words");
  execFileSync(process.execPath, [example("make.mjs"), repo]);
  const git = (...args: string[]) => execFileSync("git", ["-C", repo, ...args], { encoding: "utf8" }).trim();
  return {
    folder,
    repo,
    git,
    evolve: (...flags) => [
      "evolve",
      ...["--repo", repo, "--goal", "Make wordCounts fast"],
      ...["--coder", `node '${example("coder.mjs")}'`, "--evaluate", `node '${example("evaluate.mjs")}'`],
      ...flags,
    ],
    measure: (commit) => {
      const checkout = join(folder, `measured-${commit.slice(0, 12)}`);
      git("worktree", "add", "--quiet", "--detach", checkout, commit);
      try {
        const text = execFileSync(process.execPath, [example("evaluate.mjs")], {
          cwd: checkout,
          encoding: "utf8",
        });
        return JSON.parse(text).metrics;
      } finally {
        git("worktree", "remove", "--force", checkout);
      }
    },
  };
}

export interface EvolveDocument {
  event: "started" | "job" | "generation" | "ended";
  experiment_id: string;
  repository_id: string;
  job_id: string;
  generation: number;
  candidate: number;
  state: string;
  commit_hash: string;
  error?: { code: string };
  start: { commit_hash: string; value: number };
  best: { commit_hash: string; island_id: string | null; value: number };
  stopped: string;
  generations: number;
  jobs: number;
  succeeded: number;
  failed: number;
}

/** What `--json` printed, one document per line; each has the keys of its event only. */
export function documents(text: string): EvolveDocument[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}
