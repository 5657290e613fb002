import { realpath } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { JobPreconditionError } from "../core/errors.js";
import type { ProcessGroups } from "../handlers/process/group.js";
import { EvolutionWorkerError } from "./error.js";
import { Git } from "./git.js";
import type { EvolutionSpec } from "./spec.js";

export interface RepositoryOptions {
  signal: AbortSignal;
  groups: ProcessGroups | undefined;
  /** Folders in which it may lie; undefined: anywhere. */
  allowed: string[] | undefined;
}

export interface Repository {
  git: Git;
  /** The folder that all its worktrees share: `.git` of an ordinary clone. */
  commonDir: string;
}

/** The repository that a spec names. Throws EVOLUTION_REPOSITORY when there is none or it may not be used. */
export async function openRepository(
  { repository }: Pick<EvolutionSpec, "repository">,
  { signal, groups, allowed }: RepositoryOptions,
): Promise<Repository> {
  const folder = await realpath(resolve(repository)).catch(() => undefined);
  if (folder === undefined) throw unusable(`There is no repository at ${repository}`);
  await requireAllowed(repository, folder, allowed);
  const git = new Git(folder, signal, groups);
  // A file `.git`, or that of a linked worktree, says that git's own folders are somewhere else.
  const find = async (option: string) => {
    const path = resolve(folder, await git.read(["rev-parse", option]));
    return realpath(path).catch((error) => Promise.reject(vanished({ git }, error)));
  };
  const commonDir = await find("--git-common-dir");
  for (const place of [await find("--git-dir"), commonDir]) await requireAllowed(repository, place, allowed);
  return { git, commonDir };
}

/** Throws a JobPreconditionError when the commit to start from is not there. */
export async function requireBase(
  { git }: Repository,
  { base_commit_hash, repository }: EvolutionSpec,
  jobId: string,
): Promise<void> {
  const { succeeded } = await git.try(["cat-file", "-e", `${base_commit_hash}^{commit}`]);
  if (succeeded) return;
  // A repository that is gone has no commits either, but that is another fault.
  await git.read(["rev-parse", "--git-dir"]);
  throw new JobPreconditionError(
    jobId,
    `starts from commit ${base_commit_hash}, which ${repository} does not have`,
    {
      retryable: false,
    },
  );
}

/** Whether it is still there. */
export async function isUsable({ git, commonDir }: Repository): Promise<boolean> {
  const there = await realpath(join(commonDir, "HEAD")).then(
    () => true,
    () => false,
  );
  return there && (await git.try(["rev-parse", "--git-dir"])).succeeded;
}

export function vanished({ git }: Pick<Repository, "git">, cause?: unknown): EvolutionWorkerError {
  return unusable(`The repository ${git.folder} is gone`, undefined, cause);
}

async function requireAllowed(
  repository: string,
  place: string,
  allowed: string[] | undefined,
): Promise<void> {
  if (allowed === undefined) return;
  const roots = await Promise.all(allowed.map((root) => realpath(resolve(root)).catch(() => resolve(root))));
  const isInside = roots.some((root) => {
    const way = relative(root, place);
    return way !== ".." && !way.startsWith(`..${sep}`);
  });
  if (!isInside) throw unusable(`${repository} lies outside the folders this worker may use`, false);
}

function unusable(message: string, retryable?: boolean, cause?: unknown): EvolutionWorkerError {
  return new EvolutionWorkerError("EVOLUTION_REPOSITORY", `${message}.`, {
    field: "repository",
    ...(retryable === undefined ? {} : { retryable }),
    ...(cause === undefined ? {} : { cause }),
  });
}
