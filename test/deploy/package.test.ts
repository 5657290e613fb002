import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useTestDatabase } from "../support/oracle.js";
import { readRoot, root } from "./files.js";

// What `npm publish` would send, installed as a stranger would.

const db = useTestDatabase();
const place = mkdtempSync(join(tmpdir(), "oracle-worker-package-"));
const project = join(place, "project");
let files: string[] = [];

const run = (program: string, args: string[], cwd: string) =>
  execFileSync(program, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: db.url },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });

beforeAll(() => {
  // Of the build that is there: what `prepare` would make anew is in use by other tests.
  const packed = run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", place], root);
  const [tarball] = JSON.parse(packed) as { filename: string; files: { path: string }[] }[];
  files = (tarball?.files ?? []).map(({ path }) => path);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "name": "stranger", "private": true, "type": "module" }\n');
  run(
    "npm",
    ["install", "--no-audit", "--no-fund", join(place, tarball?.filename as string), "zod"],
    project,
  );
}, 1_800_000);
afterAll(() => rmSync(place, { recursive: true, force: true }), 300_000);

describe("the package", () => {
  it("holds the program, its schema, its pages and its Python helper, and nothing else", () => {
    const allowed = [
      /^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
      /^db\/(roles|migrations\/\d{3}_\w+)\.sql$/,
      /^docs\/.+\.(md|png|svg)$/,
      /^python\/\w+\.py$/,
      /^dist\/(?!web\/).+\.(js|d\.ts)$/,
      /^dist\/web\/.+\.(html|js|css|svg|woff2|png|ico)(\.gz)?$/,
    ];
    expect(files.filter((file) => !allowed.some((pattern) => pattern.test(file)))).toEqual([]);
    expect(files.filter((file) => /\.test\.|(^|\/)(test|bench|src)\//.test(file))).toEqual([]);
    for (const file of [
      "dist/cli/main.js",
      "dist/index.d.ts",
      "db/migrations/001_init.sql",
      "python/oracle_worker.py",
    ])
      expect(files).toContain(file);
  });

  it("runs nothing of its own when it is installed", () => {
    const { scripts } = JSON.parse(
      readFileSync(join(project, "node_modules/oracle-worker/package.json"), "utf8"),
    );
    for (const name of ["preinstall", "install", "postinstall"]) expect(scripts).not.toHaveProperty(name);
  });

  it("has a command that starts", () => {
    const { version } = JSON.parse(readRoot("package.json"));
    expect(run("npx", ["--no-install", "oracle-worker", "--version"], project).trim()).toBe(version);
  });

  it("runs the README's TypeScript unchanged", () => {
    const [, code] = /^```ts\n(.*?)^```/ms.exec(readRoot("README.md")) as unknown as [string, string];
    writeFileSync(join(project, "example.ts"), code);
    expect(run("node", ["--import", "jiti/register", "example.ts"], project)).toContain("[ 'Hello.' ]");
  });

  it("has types that the README's TypeScript agrees with", () => {
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2023"];
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
    run("node", [compiler, ...flags, ...types, "example.ts"], project);
  });
});
