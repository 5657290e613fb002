import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { EvolutionWorkerError } from "./error.js";

/** All the changes of one job, as text. */
export const MOST_CHANGE_BYTES = 1_048_576;

/** Where in its answer a coder gave the change. */
export type ChangeField = "edits" | "diff";

/** Changes that are refused, with the file and the rule. */
export function refused(path: string, rule: string, field: ChangeField = "edits"): EvolutionWorkerError {
  const message = `The change of ${JSON.stringify(path.slice(0, 200))} is refused: ${rule}.`;
  return new EvolutionWorkerError("EVOLUTION_EDITS", message, { field });
}

/** A path that stays inside its folder and outside of git's own: by its words alone. */
export function checkPath(path: string, field?: ChangeField): void {
  const rule = brokenRule(path);
  if (rule !== undefined) throw refused(path, rule, field);
}

function brokenRule(path: string): string | undefined {
  if (path === "" || path.length > 1000) return "a path has 1 to 1000 characters";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f\ufffd\\]/.test(path))
    return "a path holds no control characters and no backslash";
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) return "a path is relative to the repository";
  for (const part of path.split("/")) {
    if (part === "" || part === "." || part === "..") return 'a path holds no empty part, "." or ".."';
    // Git for other systems takes these for the same name.
    if (
      /^\.git[ .]*$|^git~\d+$|^\.git:|^\.gitmodules$/i.test(
        part.replaceAll(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, ""),
      )
    ) {
      return "git's own files are not to be changed";
    }
  }
  return undefined;
}

/** What is at a path, if anything is. No part of the path may be a symlink: it could lead out of the worktree. */
export async function lookAt(
  worktree: string,
  path: string,
  field?: ChangeField,
): Promise<"file" | "nothing"> {
  checkPath(path, field);
  const parts = path.split("/");
  for (let depth = 1; depth <= parts.length; depth++) {
    const part = parts.slice(0, depth).join("/");
    const stats = await lstat(join(worktree, part)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error.code === "ENOTDIR" || error.code === "ENAMETOOLONG"
        ? refused(path, "there can be no such file", field)
        : error;
    });
    if (!stats) return "nothing";
    if (stats.isSymbolicLink()) throw refused(path, `${part} is a symlink`, field);
    const isLast = depth === parts.length;
    if (isLast ? !stats.isFile() : !stats.isDirectory()) {
      throw refused(path, `${part} is no ${isLast ? "file" : "folder"}`, field);
    }
  }
  return "file";
}
