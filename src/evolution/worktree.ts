import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CommandEnd } from "../handlers/process/run-command.js";
import type { Database } from "../store/database.js";
import { findLost } from "../store/evolution-alive.js";
import type { Git } from "./git.js";
import type { Repository } from "./repository.js";

/** Where worktrees are made unless told otherwise. */
export const WORKSPACE = ".oracle-worker/worktrees";

/** How long other attempts may be making their worktrees. */
const PATIENCE_MS = 10_000;
const RETRY_MS = 20;

/** Its name says whose it is; git's own folder for it has the same name. */
interface Owner {
  jobId: string;
  attemptId: string;
}

const uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const namePattern = new RegExp(`^(${uuid})\\.(${uuid})$`);

export interface Worktree {
  git: Git;
  folder: string;
  remove(): Promise<void>;
}

/** An attempt's own checkout of a commit, on no branch. */
export async function addWorktree(
  { git, commonDir }: Repository,
  workspace: string,
  { jobId, attemptId }: Owner,
  commit: string,
): Promise<Worktree> {
  const name = `${jobId}.${attemptId}`;
  const folder = join(resolve(workspace), name);
  await mkdir(resolve(workspace), { recursive: true, mode: 0o700 });
  const gitDir = join(commonDir, "worktrees", name);
  // Locked: somebody's `git worktree prune` on another machine cannot see the folder, and must leave it alone.
  const args = ["worktree", "add", "--quiet", "--detach", "--lock", folder, commit];
  const remove = () => removeWorktree(folder, [gitDir]);
  const endsAt = performance.now() + PATIENCE_MS;
  try {
    for (let end = await git.try(args); !end.succeeded; end = await git.try(args)) {
      if (!meetsHalfMade(end) || performance.now() > endsAt) throw git.failed(args, end);
      await remove();
      await sleep(RETRY_MS);
    }
  } catch (error) {
    // Half made, as when the attempt is stopped in the middle. What cannot be removed is swept.
    await remove().catch(() => {});
    throw error;
  }
  return { git: git.in(folder, gitDir), folder, remove };
}

/** git looks at every worktree there is, and dies of one that another git is just making. */
function meetsHalfMade({ stderr }: CommandEnd): boolean {
  return /failed to read .*\/worktrees\//.test(stderr.toString("utf8"));
}

/** Removes what attempts left behind that have lost their jobs, in the workspace and in the repository. */
export async function sweepWorktrees(
  db: Database,
  { commonDir }: Pick<Repository, "commonDir">,
  workspace: string,
): Promise<number> {
  const inGit = join(commonDir, "worktrees");
  const names = [...new Set([...(await entries(resolve(workspace))), ...(await entries(inGit))])];
  const found = names.flatMap((name) => {
    const [, jobId, attemptId] = namePattern.exec(name) ?? [];
    return jobId && attemptId ? [{ name, jobId, attemptId }] : [];
  });
  const lost = await findLost(db, found);
  const dead = found.filter(({ attemptId }) => lost.has(attemptId));
  for (const { name } of dead) {
    const folder = join(resolve(workspace), name);
    await removeWorktree(folder, [join(inGit, name), ...(await elsewhere(folder, name))]);
  }
  return dead.length;
}

/** The checkout, and what git knows of it: what `git worktree remove` does, also of one that was half made. */
async function removeWorktree(folder: string, inGit: string[]): Promise<void> {
  // Something of a killed attempt may still be writing for a moment.
  const options = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };
  for (const path of [folder, ...inGit]) await rm(path, options);
}

/** The workspace may hold a worktree of another repository. */
async function elsewhere(folder: string, name: string): Promise<string[]> {
  const text = await readFile(join(folder, ".git"), "utf8").catch(() => "");
  const path = /^gitdir: (\/.*)\n?$/.exec(text)?.[1];
  return path?.endsWith(`/worktrees/${name}`) ? [path] : [];
}

async function entries(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}
