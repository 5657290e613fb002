import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { until, useTestDatabase } from "../support/oracle.js";
import { type Running, runCli } from "../support/process.js";
import { settle, shot, useBrowser } from "./support/browser.js";

// `oracle-worker dev` as a newcomer meets it: the printed address, the sample job, the crash button.

const db = useTestDatabase();
const browser = useBrowser();
let dev: Running;
let login: string;
let session: Awaited<ReturnType<ReturnType<Page["context"]>["cookies"]>>;

beforeAll(async () => {
  dev = runCli(["dev", "--port", "0"], { DATABASE_URL: db.url });
  login = await until(
    "the login address",
    async () => /http:\/\/127\.0\.0\.1:\d+\/login\?code=\S+/.exec(dev.output())?.[0],
    120_000,
  );
}, 180_000);

/** A page of somebody who is logged in already. */
async function open(path: string): Promise<Page> {
  const page = await browser.page();
  await page.context().addCookies(session);
  await page.goto(new URL(path, login).href);
  return page;
}

it("logs in by the address that dev prints, once", async () => {
  const page = await browser.page();
  await page.goto(login);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await settle(page);
  await shot(page, "dev-overview", { whole: true });
  session = await page.context().cookies();

  const second = await browser.page();
  await second.goto(login);
  await second.getByText("used already").waitFor();
  await shot(second, "dev-address-used");
  expect(await second.getByRole("navigation").count()).toBe(0);
});

it("shows the sample job and its result", async () => {
  const page = await open("/");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("cell", { name: "summarize_text" }).waitFor();
  await page.getByRole("cell", { name: "Succeeded" }).waitFor();
  await page.locator("tbody a").first().click();
  await page.getByRole("region", { name: "Result" }).getByText("bullets").waitFor();
  await settle(page);
  await shot(page, "dev-sample-job");
});

it("kills the worker of the slow sample by its crash button, and a second attempt finishes", async () => {
  const page = await open("/");
  await page.getByRole("button", { name: "Run the slow sample" }).click();
  await page.getByRole("button", { name: "Kill its worker" }).click();
  const attempts = page.getByRole("region", { name: "Attempts" }).getByRole("listitem");
  await attempts.filter({ hasText: "WORKER_CRASHED" }).waitFor();
  await shot(page, "dev-crashed");
  await attempts.nth(1).getByText("Succeeded").waitFor();
  await attempts.first().getByText("Lease expired").waitFor();
  await page.getByRole("region", { name: "Result" }).getByText('"finished_by_attempt": 2').waitFor();
  await shot(page, "dev-recovered");
  dev.process.kill("SIGTERM");
  expect(await dev.ended).toBe(0);
});
