import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const folder = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const built = folder("dist/web/");
const html = readFileSync(join(built, "index.html"), "utf8");

describe("the built dashboard", () => {
  it("needs less than 200 kB, compressed, before its first page shows", () => {
    const linked = [...html.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, path = ""]) => path);
    expect(linked.some((path) => path.endsWith(".js"))).toBe(true);
    expect(linked.some((path) => path.endsWith(".css"))).toBe(true);
    const bytes = ["index.html", ...linked].map((path) => gzipSync(readFileSync(join(built, path))).length);
    const total = bytes.reduce((sum, size) => sum + size, 0);
    expect(total).toBeLessThan(200_000);
  });

  it("loads all of it from its own server, with no script or style inside the page", () => {
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
    expect(html).not.toMatch(/<style|style=|\bon\w+=/);
    expect(html).not.toMatch(/(?:src|href)="(?!\/)/);
    for (const file of readdirSync(join(built, "assets")).filter((name) => name.endsWith(".css"))) {
      expect(readFileSync(join(built, "assets", file), "utf8")).not.toMatch(/url\(|@import/);
    }
  });
});

it("no part of the dashboard writes markup from text", () => {
  const files = readdirSync(folder("web"), { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => /\.tsx?$/.test(file));
  expect(sources.length).toBeGreaterThan(40);
  for (const file of sources) {
    const text = readFileSync(join(folder("web"), file), "utf8");
    expect(text, file).not.toMatch(/dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|\beval\(/);
  }
});
