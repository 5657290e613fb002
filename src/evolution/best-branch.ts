import { OracleError } from "../core/errors.js";
import type { Git } from "./git.js";

/** Refuses, before any work is done, a branch that could not be moved to what will come of the base. */
export async function checkBranch(git: Git, branch: string, base: string): Promise<void> {
  const named = await git.try(["check-ref-format", `refs/heads/${branch}`]);
  if (!named.succeeded) throw refused(branch, "is no name that git allows");
  // Names of branches are paths: none can lie below another, and each job makes one.
  const heads = (await git.read(["for-each-ref", "--format=%(refname:strip=2)", "refs/heads"])).split("\n");
  const rival = [...heads, "evolution/job/ID"].find(
    (head) =>
      head !== "" &&
      (head.startsWith(`${branch}/`) || (`${branch}/`.startsWith(`${head}/`) && head !== branch)),
  );
  if (rival !== undefined) throw refused(branch, `cannot be beside the branch ${rival}`);
  const current = await tipOf(git, branch);
  if (current !== undefined) await checkMovable(git, branch, { from: current, to: base });
}

/** Another run of the same experiment may be moving it just now. */
const MOST_TRIES = 5;

/** Lets the branch point at the commit; whoever moves it in between is not overwritten unseen. */
export async function moveBranch(git: Git, branch: string, commit: string): Promise<void> {
  for (let number = 1; ; number++) {
    const current = await tipOf(git, branch);
    if (current === commit) return;
    if (current !== undefined) await checkMovable(git, branch, { from: current, to: commit });
    const from = current ?? "0".repeat(commit.length);
    const args = ["update-ref", "-m", "oracle-worker evolve", `refs/heads/${branch}`, commit, from];
    const end = await git.try(args);
    if (end.succeeded) return;
    if (number === MOST_TRIES) throw git.failed(args, end);
  }
}

async function tipOf(git: Git, branch: string): Promise<string | undefined> {
  const found = await git.try(["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`]);
  return found.succeeded ? found.stdout.toString().trim() : undefined;
}

/** Moving it must lose nothing: every job's commit has a branch of its own besides, and what is behind us stays so. */
async function checkMovable(git: Git, branch: string, move: { from: string; to: string }): Promise<void> {
  const worktrees = await git.read(["worktree", "list", "--porcelain"]);
  if (worktrees.split("\n").includes(`branch refs/heads/${branch}`)) {
    throw refused(branch, "is checked out somewhere, and the files there would not move with it");
  }
  const { from, to } = move;
  const jobs = await git.read(["for-each-ref", "--points-at", from, "refs/heads/evolution/job"]);
  const ahead = await git.read(["rev-list", "--max-count=1", `${to}..${from}`]);
  if (jobs !== "" || ahead === "") return;
  throw refused(branch, `is at ${from.slice(0, 12)}, which no evolution job made and which would be lost`);
}

function refused(branch: string, why: string): OracleError {
  const message = `branch ${JSON.stringify(branch)} ${why}; give another name.`;
  return new OracleError("INVALID_ARGUMENT", message, { field: "branch" });
}
