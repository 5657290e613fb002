import { spawn } from "node:child_process";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** What it takes to build the product and to run its tests. */
const needed = /^(?:src|db|test|package\.json|tsconfig.*\.json|vitest\.config\.ts)$/;

/** A copy of the working tree that may be broken at will. */
export class Copy {
  folder = mkdtempSync(join(tmpdir(), "oracle-worker-holes-"));
  /** Not within the copy: a server run for root by another account would not get in, and keep its data elsewhere. */
  serverFolder = mkdtempSync(join(tmpdir(), "oracle-worker-holes-server-"));
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #running;
  #interrupted = false;

  /** @param {string} root */
  fill(root) {
    for (const name of readdirSync(root).filter((name) => needed.test(name))) {
      cpSync(join(root, name), join(this.folder, name), {
        recursive: true,
        filter: (path) => basename(path) !== "node_modules",
      });
    }
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  remove() {
    for (const folder of [this.folder, this.serverFolder]) rmSync(folder, { recursive: true, force: true });
  }

  /** What runs fails at once, and so does whatever would run next. */
  interrupt() {
    this.#interrupted = true;
    // The whole group: vitest has processes of its own.
    if (this.#running?.pid) process.kill(-this.#running.pid, "SIGKILL");
  }

  /**
   * Applies a hole's replacements; returns the function that takes them back. Each must fit exactly one place:
   * one that fits nowhere would leave the fix in, one that fits twice would undo something else as well.
   * @param {import("./holes.mjs").Hole} hole
   * @returns {() => void}
   */
  open(hole) {
    /** @type {Map<string, string>} */
    const before = new Map();
    /** @type {Map<string, string>} */
    const after = new Map();
    for (const { within, find, replace } of hole.undo) {
      const pattern = find instanceof RegExp ? find : new RegExp(escapeRegExp(find));
      const fits = within
        .flatMap((path) => sourcesIn(join(this.folder, path)))
        .map((path) => ({ path, text: after.get(path) ?? readFileSync(path, "utf8") }))
        .flatMap((file) => [...file.text.matchAll(new RegExp(pattern, "g"))].map(() => file));
      const [fit] = fits;
      if (!fit || fits.length > 1) {
        const where = `${find} is in ${fits.length} places of ${within.join(", ")}`;
        throw new Error(`the patch of hole ${hole.number} no longer fits: ${where}`);
      }
      if (!before.has(fit.path)) before.set(fit.path, fit.text);
      after.set(fit.path, fit.text.replace(pattern, replace));
    }
    for (const [path, text] of after) writeFileSync(path, text);
    return () => {
      for (const [path, text] of before) writeFileSync(path, text);
    };
  }

  async build() {
    const { code, output } = await this.#run([
      "node_modules/typescript/bin/tsc",
      "-p",
      "tsconfig.build.json",
    ]);
    if (code !== 0) throw new Error(`it does not build:\n${output}`);
  }

  /**
   * Runs the tests of these names only; says of each how it went, and what it said if it failed.
   * @param {{ file: string, name: string }[]} tests
   * @param {string} databaseUrl
   * @returns {Promise<{ status: string, said: string }[]>}
   */
  async test(tests, databaseUrl) {
    const report = join(this.folder, "report.json");
    rmSync(report, { force: true });
    const names = tests.map(({ name }) => escapeRegExp(name)).join("|");
    const args = ["run", ...new Set(tests.map(({ file }) => file)), "-t", `(?:${names})$`];
    const { output } = await this.#run(
      // Without its cache: that would be the real tree's, behind the link.
      [
        "node_modules/vitest/vitest.mjs",
        ...args,
        "--reporter=json",
        `--outputFile=${report}`,
        "--cache=false",
      ],
      { TEST_DATABASE_URL: databaseUrl },
    );
    const results = readReport(report, output);
    return tests.map(({ file, name }) => {
      const ofFile = results.find((result) => result.name === join(this.folder, file));
      const found = ofFile?.assertionResults.filter(({ title }) => title === name) ?? [];
      const [only] = found;
      if (!only || found.length > 1)
        return { status: `there are ${found.length} of that name`, said: output };
      return { status: only.status, said: only.failureMessages.join("\n") };
    });
  }

  /**
   * @param {string[]} args
   * @param {Record<string, string>} [env]
   * @returns {Promise<{ code: number | null, output: string }>}
   */
  #run(args, env = {}) {
    return new Promise((resolve, reject) => {
      if (this.#interrupted) return reject(new Interrupted());
      const child = spawn(process.execPath, args, {
        cwd: this.folder,
        env: { ...process.env, NO_COLOR: "1", ...env },
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
      this.#running = child;
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (chunk) => {
          output += chunk;
        });
      }
      child.once("error", reject);
      child.once("close", (code) => {
        this.#running = undefined;
        if (this.#interrupted) reject(new Interrupted());
        else resolve({ code, output });
      });
    });
  }
}

export class Interrupted extends Error {
  constructor() {
    super("interrupted");
  }
}

/**
 * @typedef {{ title: string, status: string, failureMessages: string[] }} TestResult
 * @param {string} path
 * @param {string} output
 * @returns {{ name: string, assertionResults: TestResult[] }[]}
 */
function readReport(path, output) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).testResults;
  } catch {
    throw new Error(`vitest left no report:\n${output}`);
  }
}

/**
 * The file itself, or a folder's sources without their tests.
 * @param {string} path
 * @returns {string[]}
 */
function sourcesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:ts|sql)$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => join(path, name));
}

/** @param {string} text */
function escapeRegExp(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
