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
  [/^(?:GIT binary patch|Binary files .* differ)/m, "only text can be changed this way"],
];
const movedFrom = /^(?:rename|copy) from (.+)$/gm;

/** Applies a unified diff, all of it or nothing. git reads it; what it would touch is looked at before. */
export async function applyDiff(git: Git, diff: string): Promise<void> {
  checkText(diff, "diff");
  for (const [pattern, rule] of forbidden) {
    const line = pattern.exec(diff)?.[0];
    if (line !== undefined) throw refused(line, rule);
  }
  const input = diff.endsWith("\n") ? diff : `${diff}\n`;
  for (const [, path = ""] of diff.matchAll(movedFrom)) checkPath(path);
  for (const path of await pathsIn(git, input)) await lookAt(git.folder, path);
  await apply(git, ["--index"], input);
}

async function pathsIn(git: Git, input: string): Promise<string[]> {
  const counted = await apply(git, ["--numstat", "-z"], input);
  const paths = counted.split("\0").filter(Boolean);
  return paths.map((line) => line.replace(/^(?:\d+|-)\t(?:\d+|-)\t/, ""));
}

async function apply(git: Git, args: string[], input: string): Promise<string> {
  // The counts in a hunk's head are what models get wrong most; git can count for itself.
  const end = await git.try(["apply", "--recount", "--whitespace=nowarn", ...args, "-"], { input });
  if (end.succeeded) return end.stdout.toString("utf8");
  const said = end.stderr.toString("utf8").trim().slice(-500) || end.how;
  const message = `The coder's diff cannot be applied: ${said}`;
  throw new EvolutionWorkerError("EVOLUTION_EDITS", message, { field: "diff" });
}
