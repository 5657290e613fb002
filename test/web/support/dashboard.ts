import type { Page } from "playwright-core";
import { beforeAll, expect } from "vitest";
import { runToEnd } from "../../support/cli.js";
import { type TestDatabase, until, useTestDatabase } from "../../support/oracle.js";
import { type Running, runCli } from "../../support/process.js";
import { type Screen, type TestBrowser, useBrowser } from "./browser.js";

export type Role = "viewer" | "operator" | "admin";

/** A real server on a database of its own, and a browser. Call it at the top of a test file. */
export function useDashboard(): Dashboard {
  const dashboard = new Dashboard(useTestDatabase(), useBrowser());
  beforeAll(() => dashboard.start());
  return dashboard;
}

export class Dashboard {
  url = "";
  private server: Running | undefined;

  constructor(
    readonly db: TestDatabase,
    readonly browser: TestBrowser,
  ) {}

  async start(): Promise<void> {
    const env = { DATABASE_URL: this.db.url, ARTIFACTS: `file:${this.db.artifacts}` };
    this.server = runCli(["serve", "--port", "0"], env);
    this.url = await addressOf(this.server);
  }

  /** A new token; without a tenant it opens all of them. */
  async token(role: Role, tenant?: string, name?: string): Promise<string> {
    const whose = tenant === undefined ? ["--all"] : [tenant];
    const named = name === undefined ? [] : ["--name", name];
    const made = await runToEnd(["tenants", "token", ...whose, "--role", role, ...named], {
      env: { DATABASE_URL: this.db.url },
    });
    expect(made).toMatchObject({ code: 0, stderr: "" });
    return String(made.json.token);
  }

  /** A page of the dashboard, logged in through its form. */
  async open(path: string, options: Screen & { role?: Role; tenant?: string } = {}): Promise<Page> {
    const page = await this.browser.page(options);
    await page.goto(this.url + path);
    await logIn(page, await this.token(options.role ?? "admin", options.tenant));
    return page;
  }
}

export async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator("main.page").waitFor();
}

/** The address that `serve` and `dev` print when they are ready. */
export function addressOf(server: Running): Promise<string> {
  return until(
    "the server's address",
    async () => /(http:\/\/127\.0\.0\.1:\d+)/.exec(server.output())?.[1],
    120_000,
  );
}
