import type { CommandEnd } from "../handlers/process/run-command.js";
import { checkText } from "./edits.js";
import { EvolutionWorkerError } from "./error.js";
import type { Git } from "./git.js";
import { checkPath, lookAt, refused } from "./paths.js";

/** Lines of a diff's head that name what text cannot be: a symlink, a submodule, bytes. */
const forbidden: [RegExp, string][] = [
  [
    /^(?:new file mode|deleted file mode|old mode|new mode) (?:120000|160000)/m,
    "symlinks and submodules stay as they are",
  ],
  [/^index [0-9a-f]+\.\.[0-9a-f]+ (?:120000|160000)/m, "symlinks and submodules stay as they are"],
  // git would take the first part of it for a prefix.
  [
    /^--- (?:(?<from>\/(?!dev\/null\b).*)\n\+\+\+ |.*\n\+\+\+ (?<to>\/(?!dev\/null\b).*))/m,
    "a path is relative to the repository",
  ],
  [/^(?:GIT binary patch|Binary files .* differ)/m, "only text can be changed this way"],
];
const movedFrom = /^(?:rename|copy) from (.+)$/gm;

/** Applies a unified diff, all of it or nothing. git reads it; what it would touch is looked at before. */
export async function applyDiff(git: Git, diff: string): Promise<void> {
  checkText(diff, "diff");
  for (const [pattern, rule] of forbidden) {
    const found = pattern.exec(diff);
    if (found) throw refused(fileOf(diff, found), rule, "diff");
  }
  for (const [, path = ""] of diff.matchAll(movedFrom)) checkPath(path, "diff");
  const input = diff.endsWith("\n") ? diff : `${diff}\n`;
  const first = await tryApply(git, input, []);
  if (first === undefined) return;
  // The counts in a hunk's head are what models get wrong most. Told to, git counts itself, but then it takes the head
  // of the next file for lines of this one unless there is a line `diff --git` between.
  if ((await tryApply(git, input, ["--recount"])) === undefined) return;
  const message = `The coder's diff cannot be applied: ${first}`;
  throw new EvolutionWorkerError("EVOLUTION_EDITS", message, { field: "diff" });
}

/** The file in whose part of the diff something was found. */
function fileOf(diff: string, { 0: line, index, groups }: RegExpExecArray): string {
  const heads = [...diff.slice(0, index).matchAll(/^diff --git .* "?b\/(.+?)"?$/gm)];
  return groups?.to ?? groups?.from ?? heads.at(-1)?.[1] ?? line;
}

/** Undefined when it was applied; otherwise what git said. */
async function tryApply(git: Git, input: string, options: string[]): Promise<string | undefined> {
  const apply = (...args: string[]) =>
    git.try(["apply", "--whitespace=nowarn", ...options, ...args, "-"], { input });
  const listed = await apply("--numstat", "-z");
  if (!listed.succeeded) return words(listed);
  for (const line of listed.stdout.toString("utf8").split("\0").filter(Boolean)) {
    await lookAt(git.folder, line.replace(/^(?:\d+|-)\t(?:\d+|-)\t/, ""), "diff");
  }
  const applied = await apply("--index");
  return applied.succeeded ? undefined : words(applied);
}

function words({ stderr, how }: CommandEnd): string {
  return stderr.toString("utf8").trim().slice(-500) || how;
}
