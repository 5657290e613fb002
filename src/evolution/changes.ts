import { lstat, readlink, rm } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { Churn } from "../core/evolution.js";
import { EvolutionWorkerError } from "./error.js";
import type { Git } from "./git.js";
import { checkPath, MOST_CHANGE_BYTES, refused } from "./paths.js";

/** A file this large is not even looked into. */
const LARGEST_FILE_BYTES = 8 * MOST_CHANGE_BYTES;

const SYMLINK = "120000";
const SUBMODULE = "160000";

/** What a coder made of the base commit. */
export interface Changes {
  tree: string;
  /** From the base to the tree, each byte a character: what another clone needs to make the same tree. */
  patch: string;
}

/** Takes what has changed in a worktree since the base, whoever changed it, if all of it may be committed. */
export async function takeChanges(git: Git, base: string): Promise<Changes> {
  // Left by a coder's git that was killed; nothing of it runs any more.
  const lock = resolve(git.folder, await git.read(["rev-parse", "--git-path", "index.lock"]));
  await rm(lock, { force: true });
  await checkFiles(git);
  await git.read(["add", "--all", "--", "."]);
  const changed = await changedFiles(git, base);
  if (changed.length === 0) {
    throw new EvolutionWorkerError("EVOLUTION_UNCHANGED", "The coder left every file as it was.");
  }
  for (const { path, mode } of changed) await checkChanged(git.folder, path, mode);
  const patch = await git.bytes(["diff", "--cached", "--binary", "--full-index", ...plainDiff, base]);
  if (patch.length > MOST_CHANGE_BYTES) {
    const path = changed[0]?.path ?? "";
    throw refused(
      path,
      `all changes together are ${patch.length} bytes; at most ${MOST_CHANGE_BYTES} are taken`,
    );
  }
  return { tree: await git.read(["write-tree"]), patch: patch.toString("latin1") };
}

/** Leaves exactly the tree in the worktree: what is evaluated is what is committed. */
export async function restoreChanges(git: Git, base: string, { tree, patch }: Changes): Promise<void> {
  if (!(await git.try(["cat-file", "-e", `${tree}^{tree}`])).succeeded) {
    await git.read(["read-tree", "--reset", base]);
    await git.read(["apply", "--cached", "--binary", "--whitespace=nowarn", "-"], {
      input: Buffer.from(patch, "latin1"),
    });
    const made = await git.read(["write-tree"]);
    if (made !== tree) throw refused(git.folder, `the recorded changes make tree ${made}, not ${tree}`);
  }
  await git.read(["read-tree", "--reset", "-u", tree]);
  await git.read(["clean", "-ffdxq"]);
}

/** How much each file of a commit changed. */
export async function readChurn(git: Git, base: string, tree: string): Promise<Churn[]> {
  const lines = await git.list(["diff", "--numstat", "-z", ...plainDiff, base, tree]);
  return lines.flatMap((line) => {
    const [, added, deleted, path] = /^(\d+|-)\t(\d+|-)\t(.+)$/s.exec(line) ?? [];
    // A binary file has no lines to count.
    return path === undefined ? [] : [{ path, added: Number(added) || 0, deleted: Number(deleted) || 0 }];
  });
}

/** Whatever the repository's own settings say of diffs. */
const plainDiff = [
  "--no-color",
  "--no-ext-diff",
  "--no-textconv",
  "--no-renames",
  "--src-prefix=a/",
  "--dst-prefix=b/",
];

/** Before git reads them. A repository inside the worktree shows as a folder. */
async function checkFiles(git: Git): Promise<void> {
  const paths = await git.list(["ls-files", "-z", "--modified", "--others", "--exclude-standard"]);
  for (const path of paths) {
    if (path.endsWith("/")) throw refused(path, "a repository inside the repository cannot be committed");
    const stats = await lstat(join(git.folder, path)).catch(() => undefined);
    if (stats && stats.size > LARGEST_FILE_BYTES) {
      throw refused(path, `it has ${stats.size} bytes; at most ${LARGEST_FILE_BYTES} are looked at`);
    }
  }
}

async function changedFiles(git: Git, base: string): Promise<{ path: string; mode: string }[]> {
  const parts = await git.list(["diff", "--cached", "--raw", "-z", ...plainDiff, base]);
  const files: { path: string; mode: string }[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, mode = ""] = (parts[at] as string).split(" ");
    files.push({ path: parts[at + 1] as string, mode });
  }
  return files;
}

async function checkChanged(worktree: string, path: string, mode: string): Promise<void> {
  checkPath(path);
  if (mode === SUBMODULE) throw refused(path, "submodules stay as they are");
  if (mode !== SYMLINK) return;
  const target = resolve(worktree, dirname(path), await readlink(join(worktree, path)));
  const way = relative(worktree, target);
  if (way === ".." || way.startsWith(`..${sep}`))
    throw refused(path, "it is a symlink that leaves the repository");
  if (way !== "") checkPath(way.split(sep).join("/"));
}
