import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();
const folder = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const built = folder("dist/web/");
const html = readFileSync(join(built, "index.html"), "utf8");

describe("the built dashboard", () => {
  it("sends less than 200 kB before its first page shows", async () => {
    const page = await dashboard.open("/");
    await page.locator(".charts canvas").first().waitFor();
    const sent = (await page.evaluate(`
      ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
        .map(({ name, transferSize }) => ({ name: new URL(name).pathname, transferSize }))
    `)) as { name: string; transferSize: number }[];
    // Nothing of it lay in a cache.
    for (const ending of [/^\/$/, /\.js$/, /\.css$/]) {
      expect(sent.find(({ name }) => ending.test(name))?.transferSize, String(ending)).toBeGreaterThan(0);
    }
    const total = sent.reduce((sum, { transferSize }) => sum + transferSize, 0);
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
