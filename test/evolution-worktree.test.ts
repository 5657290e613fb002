import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openRepository } from "../dist/evolution/repository.js";
import { addWorktree } from "../dist/evolution/worktree.js";

const folder = mkdtempSync(join(tmpdir(), "oracle-worker-worktree-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a worktree whose making ends in the middle leaves nothing behind", async () => {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], {
      cwd: folder,
      encoding: "utf8",
    });
  git("init", "--quiet");
  writeFileSync(join(folder, "file"), "text");
  writeFileSync(join(folder, ".gitattributes"), "file filter=slow");
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
  // The repository's own filter: git, and the git that called it, are killed in the middle of the checkout.
  git("config", "filter.slow.smudge", "kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat) $PPID");
  const repository = await openRepository(
    { repository: folder },
    { signal: new AbortController().signal, groups: undefined, allowed: undefined },
  );
  const workspace = join(folder, "workspace");
  const owner = { jobId: randomUUID(), attemptId: randomUUID() };
  await expect(
    addWorktree(repository, workspace, owner, git("rev-parse", "HEAD").trim()),
  ).rejects.toMatchObject({ code: "EVOLUTION_REPOSITORY" });
  expect(readdirSync(workspace)).toEqual([]);
  expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
});
