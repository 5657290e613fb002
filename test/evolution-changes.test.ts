import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { restoreChanges, takeChanges } from "../dist/evolution/changes.js";
import { applyDiff } from "../dist/evolution/diff.js";
import { applyEdits, parseEdits } from "../dist/evolution/edits.js";
import { Git } from "../dist/evolution/git.js";
import { addWorktree } from "../dist/evolution/worktree.js";
import { useRepository } from "./support/evolution.js";

// What a coder may do to a repository, and what it may not, whatever it answers.

const repository = useRepository({
  "a.txt": "one\ntwo\nthree\n",
  "twice.txt": "same\nsame\n",
  "open.txt": "no end",
  "crlf.txt": "one\r\ntwo\r\n\r\nthree",
  "mixed.txt": "one\r\ntwo\nthree\r\n",
  "bytes.bin": "\0\u0001\u0002",
  "dir/b.txt": "four\n",
});
const outside = join(repository.home, "outside");
mkdirSync(outside);
symlinkSync(outside, join(repository.folder, "link"));
symlinkSync(join(outside, "target.txt"), join(repository.folder, "file-link"));
writeFileSync(join(outside, "target.txt"), "untouched\n");
repository.git("add", "--all");
repository.git("commit", "--quiet", "--message=Links");
const base = repository.git("rev-parse", "HEAD");
const { signal } = new AbortController();

async function worktree(): Promise<Git> {
  const git = new Git(repository.folder, signal, undefined);
  const owner = { jobId: randomUUID(), attemptId: randomUUID() };
  const made = await addWorktree(
    { git, commonDir: join(repository.folder, ".git") },
    repository.workspace,
    owner,
    base,
  );
  return made.git;
}

const refusal = (message: string) =>
  expect.objectContaining({ code: "EVOLUTION_EDITS", message: expect.stringContaining(message) });

/** Nothing of it is to be seen, in the worktree or outside. */
function untouched(git: Git): void {
  expect(execFileSync("git", ["status", "--porcelain"], { cwd: git.folder, encoding: "utf8" })).toBe("");
  expect(readdirSync(outside)).toEqual(["target.txt"]);
  expect(readFileSync(join(outside, "target.txt"), "utf8")).toBe("untouched\n");
  expect(existsSync(join(repository.home, "escaped"))).toBe(false);
}

const hostilePaths: [string, string][] = [
  ["../escaped", '".."'],
  ["dir/../../escaped", '".."'],
  ["./a.txt", '"."'],
  ["dir//b.txt", "empty part"],
  [join(repository.home, "escaped"), "relative"],
  ["C:/escaped", "relative"],
  ["dir\\..\\escaped", "backslash"],
  [".git/config", "git's own"],
  [".git", "git's own"],
  [".GIT/hooks/post-checkout", "git's own"],
  ["dir/.git/config", "git's own"],
  [".git./config", "git's own"],
  [".gi\u200ct/config", "git's own"],
  ["git~1/config", "git's own"],
  [".gitmodules", "git's own"],
  ["link/escaped", "is a symlink"],
  ["file-link", "is a symlink"],
  ["dir", "is no file"],
  ["a.txt/inner", "is no folder"],
  ["x".repeat(300), "no such file"],
  ["x/".repeat(600), "1000 characters"],
];

describe("search/replace blocks", () => {
  const block = (path: string, search: string, replace: string) =>
    `${path}\n<<<<<<< SEARCH\n${search}=======\n${replace}>>>>>>> REPLACE\n`;
  const apply = (git: Git, text: string) => applyEdits(git.folder, parseEdits(text));

  it("change files, make files and keep what they do not name", async () => {
    const git = await worktree();
    await apply(
      git,
      block("a.txt", "two\n", "2\n2a\n") +
        block("a.txt", "2a\n", "") +
        block("new/deep/c.txt", "", "five\n") +
        block("open.txt", "no end\n", "an end\n"),
    );
    expect(readFileSync(join(git.folder, "a.txt"), "utf8")).toBe("one\n2\nthree\n");
    expect(readFileSync(join(git.folder, "new/deep/c.txt"), "utf8")).toBe("five\n");
    expect(readFileSync(join(git.folder, "open.txt"), "utf8")).toBe("an end");
  });

  it("keep the line ends of a file of another system", async () => {
    const git = await worktree();
    await apply(
      git,
      block("crlf.txt", "one\ntwo\n", "1\n2\n") +
        block("crlf.txt", "\nthree\n", "\n3\n4\n") +
        block("mixed.txt", "two\n", "2\n"),
    );
    expect(readFileSync(join(git.folder, "crlf.txt"), "utf8")).toBe("1\r\n2\r\n\r\n3\r\n4");
    expect(readFileSync(join(git.folder, "mixed.txt"), "utf8")).toBe("one\r\n2\nthree\r\n");
  });

  it.each(hostilePaths)("that name %j are refused", async (path, message) => {
    const git = await worktree();
    const text = block("a.txt", "one\n", "1\n") + block(path, "", "x\n");
    await expect(apply(git, text)).rejects.toThrow(refusal(message));
    untouched(git);
  });

  it.each([
    ["a text that is not there", block("a.txt", "nine\n", "9\n"), "is not in it"],
    ["a text across mixed line ends", block("mixed.txt", "one\ntwo\n", "1\n"), "line endings"],
    ["a text that is there twice", block("twice.txt", "same\n", "other\n"), "more than once"],
    ["a file that is not there", block("none.txt", "x\n", "y\n"), "no such file"],
    ["a new file that is there", block("a.txt", "", "x\n"), "it is there"],
    ["a file of bytes", block("bytes.bin", "x\n", "y\n"), "not a text file"],
    ["a file as a folder of another", block("n", "", "x\n") + block("n/m", "", "x\n"), "is to be a file"],
  ])("with %s are refused, and nothing is changed", async (_what, text, message) => {
    const git = await worktree();
    await expect(apply(git, block("dir/b.txt", "four\n", "4\n") + text)).rejects.toThrow(refusal(message));
    untouched(git);
  });
});

describe("a unified diff", () => {
  const added = (path: string) => `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+x\n`;
  const changed = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

  it("changes, makes, removes and renames files", async () => {
    const git = await worktree();
    await applyDiff(
      git,
      `${changed}${added("new.txt")}--- a/twice.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-same
-same
diff --git a/dir/b.txt b/moved.txt
similarity index 100%
rename from dir/b.txt
rename to moved.txt`,
    );
    expect(readFileSync(join(git.folder, "a.txt"), "utf8")).toBe("one\n2\nthree\n");
    expect(readdirSync(git.folder).sort()).toEqual(
      [
        ".git",
        "a.txt",
        "bytes.bin",
        "crlf.txt",
        "file-link",
        "link",
        "mixed.txt",
        "moved.txt",
        "new.txt",
        "open.txt",
      ].sort(),
    );
  });

  it.each<readonly [string, string]>([
    ...hostilePaths.map(([path]) => [`the path ${path}`, added(path)] as const),
    ["an absolute path of its own", `--- /dev/null\n+++ ${repository.home}/escaped\n@@ -0,0 +1 @@\n+x\n`],
    ["a path that goes up behind its prefix", "--- /dev/null\n+++ b/../../escaped\n@@ -0,0 +1 @@\n+x\n"],
    [
      "a new symlink",
      "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n",
    ],
    [
      "another target of a symlink",
      "diff --git a/link b/link\nindex 1234567..2345678 120000\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-x\n+/etc\n",
    ],
    [
      "a submodule",
      `diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit ${base}\n`,
    ],
    [
      "bytes",
      "diff --git a/b.bin b/b.bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n",
    ],
    ["a NUL", added("nul.txt").replace("+x", "+\0")],
    [
      "a file moved in from outside",
      "diff --git a/../outside/target.txt b/in.txt\nsimilarity index 100%\nrename from ../outside/target.txt\nrename to in.txt\n",
    ],
    ["10 MB", added("large.txt").replace("+x", `+${"x".repeat(10_000_000)}`)],
    ["a part that does not fit", changed.replace("-two", "-zwei")],
    ["no diff at all", "I could not do it."],
  ])("with %s is refused, and nothing is changed", async (_what, diff) => {
    const git = await worktree();
    const valid = diff.startsWith("I") ? "" : "--- a/dir/b.txt\n+++ b/dir/b.txt\n@@ -1 +1 @@\n-four\n+4\n";
    await expect(applyDiff(git, valid + diff)).rejects.toThrow(
      expect.objectContaining({ code: "EVOLUTION_EDITS", field: "diff" }),
    );
    untouched(git);
  });
});

describe("the refusal of a diff", () => {
  const head = (path: string) => `diff --git a/${path} b/${path}\n`;
  it.each([
    [
      "a symlink",
      `${head("other")}--- a/other\n+++ b/other\n${head("my link")}new file mode 120000\n`,
      "my link",
    ],
    ["bytes", `${head("dir/b.bin")}new file mode 100644\nGIT binary patch\n`, "dir/b.bin"],
    ["an absolute path", "--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n", "/etc/passwd"],
  ])("with %s names the file", async (_what, diff, path) => {
    const git = await worktree();
    await expect(applyDiff(git, diff)).rejects.toThrow(refusal(`The change of "${path}" is refused`));
  });
});

describe("what a coder did to the files itself", () => {
  it("becomes a tree, with what it deleted and without what is ignored", async () => {
    const git = await worktree();
    rmSync(join(git.folder, "dir"), { recursive: true });
    writeFileSync(join(git.folder, ".gitignore"), "junk\n");
    writeFileSync(join(git.folder, "junk"), "junk");
    writeFileSync(join(git.folder, "image.bin"), Buffer.from([0, 255, 1]));
    symlinkSync("a.txt", join(git.folder, "inside-link"));
    const { tree, patch } = await takeChanges(git, base);
    expect(repository.git("ls-tree", "-r", "--name-only", tree).split("\n")).toEqual(
      [
        ".gitignore",
        "a.txt",
        "bytes.bin",
        "crlf.txt",
        "file-link",
        "image.bin",
        "inside-link",
        "link",
        "mixed.txt",
        "open.txt",
        "twice.txt",
      ].sort(),
    );
    // The same anywhere else, from the patch alone.
    repository.git("prune", "--expire=now");
    const other = await worktree();
    await restoreChanges(other, base, { tree, patch });
    expect(readFileSync(join(other.folder, "image.bin"))).toEqual(Buffer.from([0, 255, 1]));
    expect(lstatSync(join(other.folder, "inside-link")).isSymbolicLink()).toBe(true);
    expect(existsSync(join(other.folder, "dir"))).toBe(false);
    // What is evaluated is the tree and nothing else.
    writeFileSync(join(other.folder, "left over"), "");
    await restoreChanges(other, base, { tree, patch });
    expect(existsSync(join(other.folder, "left over"))).toBe(false);
  });

  it("may have been committed by it", async () => {
    const git = await worktree();
    writeFileSync(join(git.folder, "a.txt"), "mine\n");
    const who = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
    execFileSync("git", [...who, "commit", "--quiet", "--all", "--message=By an agent"], { cwd: git.folder });
    const { tree } = await takeChanges(git, base);
    expect(repository.git("show", `${tree}:a.txt`)).toBe("mine");
  });

  it("is taken also when its git was killed at work", async () => {
    const git = await worktree();
    writeFileSync(join(git.folder, "a.txt"), "mine\n");
    writeFileSync(join(await git.read(["rev-parse", "--absolute-git-dir"]), "index.lock"), "");
    expect((await takeChanges(git, base)).patch).toContain("+mine");
  });

  it("is nothing if the files are as they were", async () => {
    const git = await worktree();
    writeFileSync(join(git.folder, "a.txt"), "one\ntwo\nthree\n");
    await expect(takeChanges(git, base)).rejects.toThrow(
      expect.objectContaining({ code: "EVOLUTION_UNCHANGED" }),
    );
  });

  it.each<[string, (folder: string) => void, string]>([
    [
      "a symlink to a file outside",
      (folder) => symlinkSync("/etc/passwd", join(folder, "l")),
      "leaves the repository",
    ],
    [
      "a symlink upwards",
      (folder) => symlinkSync("../../escaped", join(folder, "l")),
      "leaves the repository",
    ],
    ["a symlink to git's own", (folder) => symlinkSync(".git", join(folder, "l")), "git's own"],
    [
      "a repository inside",
      (folder) => {
        execFileSync("git", ["init", "--quiet", join(folder, "inner")]);
        writeFileSync(join(folder, "inner", "x"), "x");
      },
      "repository inside",
    ],
    [
      "a submodule",
      (folder) => {
        const path = `160000,${base},sub`;
        execFileSync("git", ["update-index", "--add", "--cacheinfo", path], { cwd: folder });
        mkdirSync(join(folder, "sub"));
        writeFileSync(join(folder, "sub", ".git"), `gitdir: ${join(repository.folder, ".git")}\n`);
      },
      "",
    ],
    [
      "a file of 10 MB",
      (folder) => writeFileSync(join(folder, "large"), Buffer.alloc(10_000_000, 1)),
      "10000000 bytes",
    ],
    [
      "many large files",
      (folder) => {
        for (let n = 0; n < 4; n++) writeFileSync(join(folder, `t${n}`), `${n}${"y".repeat(400_000)}\n`);
      },
      "at most 1048576",
    ],
    [
      "submodules declared",
      (folder) => writeFileSync(join(folder, ".gitmodules"), "[submodule]\n"),
      "git's own",
    ],
  ])("is refused with %s", async (_what, act, message) => {
    const git = await worktree();
    act(git.folder);
    await expect(takeChanges(git, base)).rejects.toThrow(refusal(message));
  });

  it("stays in its worktree, whatever it made of the file .git", async () => {
    const git = await worktree();
    const main = readFileSync(join(repository.folder, "a.txt"), "utf8");
    writeFileSync(join(git.folder, "a.txt"), "mine\n");
    writeFileSync(join(git.folder, ".git"), `gitdir: ${join(repository.folder, ".git")}\n`);
    const changes = await takeChanges(git, base);
    rmSync(join(git.folder, ".git"));
    await restoreChanges(git, base, changes);
    expect(readFileSync(join(git.folder, "a.txt"), "utf8")).toBe("mine\n");
    expect(readFileSync(join(repository.folder, "a.txt"), "utf8")).toBe(main);
    expect(repository.git("status", "--porcelain")).toBe("");
  });
});
