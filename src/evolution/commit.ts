import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { EffectFailed } from "../core/errors.js";
import { redactText } from "../core/redact.js";
import type { JobContext } from "../handlers/define.js";
import type { Found } from "../handlers/effects.js";
import { EvolutionWorkerError } from "./error.js";
import type { Git } from "./git.js";

/** All that a commit's hash depends on: made again, it is the same commit. */
export interface NewCommit {
  branch: string;
  parent: string;
  tree: string;
  message: string;
  author: { name: string; email: string };
  /** Seconds since 1970. */
  at: number;
}

type Effects = Pick<JobContext<unknown>, "effect">;

export function branchOf(jobId: string): string {
  return `evolution/job/${jobId}`;
}

/** Commits the tree on the job's branch, as an effect: recorded before, looked for when in doubt. */
export async function commitTree({ effect }: Effects, git: Git, commit: NewCommit): Promise<string> {
  const { commit_hash } = await effect(
    {
      key: "commit",
      kind: "reconcilable",
      request: { ...commit },
      lookup: () => findCommit(git, commit),
    },
    async () => ({ commit_hash: await putOnBranch(git, commit) }),
  );
  // The effect is history; the branch may have been deleted since, for a job that had ended and was retried.
  const there = await putOnBranch(git, commit);
  if (there === commit_hash) return there;
  throw new EvolutionWorkerError(
    "EVOLUTION_REPOSITORY",
    `Branch ${commit.branch} holds ${there}; the job has recorded ${commit_hash}.`,
  );
}

async function findCommit(git: Git, commit: NewCommit): Promise<Found<{ commit_hash: string }>> {
  const there = await readBranch(git, commit.branch);
  if (there === undefined) return { happened: false };
  const expected = await makeCommit(git, commit);
  return there === expected ? { happened: true, response: { commit_hash: there } } : { happened: "unknown" };
}

/** Makes the branch unless it is there; returns what it holds. */
async function putOnBranch(git: Git, commit: NewCommit): Promise<string> {
  const hash = await makeCommit(git, commit);
  const args = ["update-ref", `refs/heads/${commit.branch}`, hash, ""];
  let end = await git.try(args);
  if (end.succeeded) return hash;
  const there = await readBranch(git, commit.branch);
  if (there !== undefined) return there;
  // Only this job writes this branch, and only this attempt has the job: a lock is what a killed git left.
  const lock = await git.read(["rev-parse", "--git-path", `refs/heads/${commit.branch}.lock`]);
  await rm(resolve(git.folder, lock), { force: true });
  end = await git.try(args);
  if (!end.succeeded) throw git.failed(args, end);
  return hash;
}

async function readBranch(git: Git, branch: string): Promise<string | undefined> {
  const args = ["for-each-ref", "--format=%(objectname)", `refs/heads/${branch}`];
  return (await git.read(args)) || undefined;
}

async function makeCommit(git: Git, { tree, parent, message, author, at }: NewCommit): Promise<string> {
  const date = `${at} +0000`;
  return git.read(["commit-tree", "--no-gpg-sign", tree, "-p", parent], {
    input: message,
    env: {
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: author.name,
      GIT_COMMITTER_EMAIL: author.email,
      GIT_COMMITTER_DATE: date,
    },
  });
}

/** Pushes the branch, as an effect of its own. It is made on the other side or is there already; nothing is moved. */
export async function pushBranch(
  { effect }: Effects,
  git: Git,
  push: { remote: string; branch: string; commit: string },
): Promise<void> {
  const { remote, branch, commit } = push;
  const ref = `refs/heads/${branch}`;
  const lookup = async (): Promise<Found<{ pushed: string }>> => {
    const there = (await git.read(["ls-remote", "--", remote, ref])).split("\t")[0];
    if (!there) return { happened: false };
    return there === commit ? { happened: true, response: { pushed: commit } } : { happened: "unknown" };
  };
  // An address may hold a password, which is nothing to be kept.
  const request = { ...push, remote: redactText(remote) };
  await effect({ key: "push", kind: "reconcilable", request, lookup }, async () => {
    const args = ["push", "--quiet", `--force-with-lease=${ref}:`, "--", remote, `${commit}:${ref}`];
    const end = await git.try(args);
    if (end.succeeded) return { pushed: commit };
    const found = await lookup();
    if (found.happened === true) return found.response;
    throw new EffectFailed(git.failed(args, end).message, { retryable: found.happened === false });
  });
}
