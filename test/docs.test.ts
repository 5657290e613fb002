import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { exitCodes } from "../dist/cli/exit-codes.js";
import { errorCodes } from "../dist/core/errors.js";
import { settingsTable } from "../dist/core/settings.js";
import { useTestDatabase } from "./support/oracle.js";

// What the documentation says of codes, settings, files and tests is so, and what it shows runs.

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** Markdown files of the project: not those of its dependencies, builds and results. */
function markdownFiles(folder = root): string[] {
  const skipped = new Set(["node_modules", "dist", "results", "coverage"]);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return skipped.has(entry.name) || entry.name.startsWith(".") ? [] : markdownFiles(path);
    }
    return entry.name.endsWith(".md") ? [relative(root, path)] : [];
  });
}

/** Table rows that begin with a name in backticks: the name and the cells after it. */
function namedRows(path: string): Map<string, string[]> {
  const rows = [...read(path).matchAll(/^\| `([A-Z_]+)` \|(.*)\|$/gm)];
  return new Map(
    rows.map(([, name = "", cells = ""]) => [name, cells.split("|").map((cell) => cell.trim())]),
  );
}

describe("docs/errors.md", () => {
  it("lists exactly the codes there are, with their exit codes", () => {
    const rows = namedRows("docs/errors.md");
    expect([...rows.keys()].sort()).toEqual(Object.keys(errorCodes).sort());
    const documented = Object.fromEntries([...rows].map(([code, cells]) => [code, Number(cells[0])]));
    expect(documented).toEqual(exitCodes);
  });

  it("says the same meaning as the code", () => {
    for (const [code, cells] of namedRows("docs/errors.md")) {
      expect(cells[1], code).toBe(errorCodes[code as keyof typeof errorCodes]);
    }
  });
});

describe("docs/guide.md", () => {
  it("lists every setting with its default", () => {
    const rows = namedRows("docs/guide.md");
    expect([...rows.keys()].sort()).toEqual(Object.keys(settingsTable).sort());
    for (const [name, { fallback, parse }] of Object.entries(settingsTable)) {
      const shown = (rows.get(name)?.[0] ?? "").replaceAll("`", "");
      if (fallback === undefined) expect(shown, name).toBe("–");
      else expect(parse(shown), name).toEqual(fallback);
    }
  });
});

describe("every page", () => {
  /** Anchors as GitHub makes them of headings. */
  const anchorsOf = (path: string) =>
    [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    );
  const withoutCode = (text: string) => text.replaceAll(/^```.*?^```/gms, "").replaceAll(/`[^`\n]*`/g, "");

  it.each(markdownFiles())("%s: links lead somewhere", (file) => {
    for (const [, link = ""] of withoutCode(read(file)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? file : join(dirname(file), path);
      expect(existsSync(join(root, target)), `${link} in ${file}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(target), `${link} in ${file}`).toContain(anchor);
    }
  });

  it.each(markdownFiles())("%s: names files and tests that exist", (file) => {
    const text = read(file);
    for (const [, path = ""] of text.matchAll(
      /`((?:src|test|db|docs|examples|bench)\/[\w./-]+\.(?:ts|sql|md))`/g,
    )) {
      // A folder with a package file of its own speaks of its own files.
      const there = [path, join(dirname(file), path)].some((candidate) => existsSync(join(root, candidate)));
      expect(there, `${path} in ${file}`).toBe(true);
    }
    // `test/lease.test.ts` “the title of a test or of a group of tests”
    for (const [, path = "", title = ""] of text.matchAll(
      /`((?:test|src)\/[\w./-]+\.test\.ts)` “([^”]+)”/g,
    )) {
      expect(read(path), `a test of ${path}, named in ${file}`).toContain(title);
    }
  });
});

describe("the TypeScript shown in", () => {
  const db = useTestDatabase();

  /** A page's blocks in order are one module. In dist/ it finds this package by its name, as in the root. */
  async function runBlocks(page: string): Promise<{ code: number | null; output: string }> {
    const blocks = [...read(page).matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ""]) => code);
    const file = join(root, "dist", `shown-in-${basename(page, ".md")}-${process.pid}.ts`);
    writeFileSync(file, blocks.join("\n"));
    const child = spawn(process.execPath, ["--import", "jiti/register", file], {
      cwd: root,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        DATABASE_URL: db.url,
        ARTIFACTS: `file:${db.artifacts}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
      });
    }
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    rmSync(file);
    return { code, output };
  }

  it("README.md runs", { timeout: 90_000 }, async () => {
    const { code, output } = await runBlocks("README.md");
    expect(output).toContain("[ 'Hello.' ]");
    expect(code).toBe(0);
  });

  it("docs/guide.md runs", { timeout: 90_000 }, async () => {
    const { code, output } = await runBlocks("docs/guide.md");
    for (const line of [
      "true false key",
      "400 FAILED_TERMINAL the request itself is wrong",
      "429 SUCCEEDED answered in attempt 2",
      "425 SUCCEEDED answered in attempt 2",
      "CANCELLED\nPENDING\ntrue\n",
      "SUCCEEDED 1 64 true null",
      "1 page 3\ninfo drawn { pages: 3 }\nprompt.json 11 application/json\npages.txt 20 text/plain\n3\n",
      "SUCCEEDED { bullets: [ 'One.', 'Two.' ] } 1\n0\n1 answered in attempt 1\n1\n",
    ]) {
      expect(output).toContain(line);
    }
    expect(code).toBe(0);
  });

  it("docs/effects.md runs", { timeout: 90_000 }, async () => {
    const { code, output } = await runBlocks("docs/effects.md");
    for (const line of [
      "naive: { '/model': 3, '/charge': 3, '/mail': 2 }",
      "safe: { '/model': 1, '/charge': 1, '/mail': 1 } held: effect in doubt",
      "resolved: { charge: 'ch_1' } { '/model': 1, '/charge': 1, '/mail': 1 }",
      "small: 1\nlarge waits: 1\nlarge: 1 2",
      "receipts: [ { cents: 500 } ]",
      "replay: true",
    ]) {
      expect(output).toContain(line);
    }
    expect(code).toBe(0);
  });
});
