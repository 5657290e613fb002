import type { Database } from "../store/database.js";
import { findEndedInVain } from "../store/evolution-alive.js";
import { branchOf } from "./commit.js";
import type { Git } from "./git.js";
import type { Repository } from "./repository.js";
import { sweepWorktrees } from "./worktree.js";

/** Removes what dead attempts and failed jobs have left in a repository and in the workspace. */
export async function sweep(db: Database, repository: Repository, workspace: string): Promise<void> {
  await sweepWorktrees(db, repository, workspace);
  await sweepBranches(db, repository.git);
}

/** A job that ended without success after its commit has no card: its branch goes, unless it moved meanwhile. */
async function sweepBranches(db: Database, git: Git): Promise<void> {
  const format = "--format=%(objectname) %(refname:lstrip=4)";
  const lines = await git.read(["for-each-ref", format, `refs/heads/${branchOf("")}`]);
  const commits = new Map(
    lines.split("\n").flatMap((line) => {
      const [commit = "", jobId = ""] = line.split(" ");
      return /^[0-9a-f-]{36}$/.test(jobId) ? [[jobId, commit] as const] : [];
    }),
  );
  for (const jobId of await findEndedInVain(db, [...commits.keys()])) {
    await git.try(["update-ref", "-d", `refs/heads/${branchOf(jobId)}`, commits.get(jobId) as string]);
  }
}
