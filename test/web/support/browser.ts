import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import packed from "@sparticuz/chromium";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { until } from "../../support/oracle.js";

const artifacts = fileURLToPath(new URL("../../../test-artifacts/", import.meta.url));

/** How long a page may take for one thing on a busy machine. */
export const PATIENCE_MS = 90_000;

export interface Screen {
  width?: number;
  height?: number;
  dark?: boolean;
}

/** A real Chromium for the calling test file. What its pages complain about fails the test. */
export function useBrowser(): TestBrowser {
  const browser = new TestBrowser();
  beforeAll(() => browser.open());
  afterEach(() => browser.closePages());
  afterAll(() => browser.close());
  return browser;
}

export class TestBrowser {
  private browser: Browser | undefined;
  private contexts: BrowserContext[] = [];
  private complaints: string[] = [];

  async open(): Promise<void> {
    mkdirSync(artifacts, { recursive: true });
    this.browser = await chromium.launch({
      executablePath: await packed.executablePath(),
      // The package's own flags switch off the same-origin rule, among others; here it must hold.
      args: ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none"],
    });
  }

  /** A page in a profile of its own: nobody is logged in. */
  async page(screen: Screen = {}): Promise<Page> {
    const context = await (this.browser as Browser).newContext({
      viewport: { width: screen.width ?? 1360, height: screen.height ?? 860 },
      colorScheme: screen.dark ? "dark" : "light",
      locale: "en-GB",
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE_MS);
    this.contexts.push(context);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // A refused request is an answer like any other; pages show it.
      const refused = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !refused) this.complaints.push(message.text());
    });
    return page;
  }

  async closePages(): Promise<void> {
    await Promise.all(this.contexts.splice(0).map((context) => context.close()));
    expect(this.complaints.splice(0)).toEqual([]);
  }

  async close(): Promise<void> {
    await this.browser?.close();
  }
}

/** Waits until nothing on the page is still loading. */
export async function settle(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await until(
    "everything has loaded",
    async () => (await page.locator("[aria-busy]").count()) === 0,
    PATIENCE_MS,
  );
}

/**
 * How much of the page has moved by itself since it was opened, as browsers count it: 0.1 is what is called good.
 */
export async function layoutShift(page: Page): Promise<number> {
  return (await page.evaluate(`new Promise((resolve) => {
    const seen = [];
    new PerformanceObserver((list) => seen.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(seen.reduce((sum, { value, hadRecentInput }) => sum + (hadRecentInput ? 0 : value), 0)), 100);
  })`)) as number;
}

/** Kept as `test-artifacts/NAME.png`, to be looked at. */
export async function shot(page: Page, name: string, options: { whole?: boolean } = {}): Promise<void> {
  await page.screenshot({ path: `${artifacts}${name}.png`, fullPage: options.whole ?? false });
}

/** What axe finds serious or critical, each with the elements concerned. */
export async function faultsFound(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; impact: string; help: string; nodes: { html: string }[] }[];
  };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" | ")}`);
}

/** What makes the page wider than the screen; nothing, if it is not. */
export async function sticksOut(page: Page): Promise<string[]> {
  return (await page.evaluate(`
    document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
      .filter((element) => element.getBoundingClientRect().right > innerWidth)
      .map((element) => element.outerHTML.slice(0, 120))
  `)) as string[];
}
