import { expect, it } from "vitest";
import { until, useTestDatabase } from "../support/oracle.js";
import { runCli } from "../support/process.js";
import { shot, useBrowser } from "./support/browser.js";

// `oracle-worker dev` as a newcomer meets it: the printed address, the sample job, the crash button.

const db = useTestDatabase();
const browser = useBrowser();

it("logs in by the printed address, shows the sample job, and survives the crash button", {
  timeout: 120_000,
}, async () => {
  const dev = runCli(["dev", "--port", "0"], { DATABASE_URL: db.url });
  const login = await until(
    "the login address",
    async () => /http:\/\/127\.0\.0\.1:\d+\/login\?code=\S+/.exec(dev.output())?.[0],
    60_000,
  );
  const page = await browser.page();
  await page.goto(login);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await shot(page, "dev-overview");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("cell", { name: "summarize_text" }).waitFor();
  await page.getByRole("cell", { name: "Succeeded" }).waitFor();
  await page.locator("tbody a").first().click();
  await page.getByRole("region", { name: "Result" }).getByText("bullets").waitFor();
  await shot(page, "dev-sample-job");

  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByRole("button", { name: "Run the slow sample" }).click();
  await page.getByRole("button", { name: "Kill its worker" }).click();
  const attempts = page.getByRole("region", { name: "Attempts" }).getByRole("listitem");
  await attempts.filter({ hasText: "WORKER_CRASHED" }).waitFor();
  await shot(page, "dev-crashed");
  await attempts.nth(1).getByText("Succeeded").waitFor({ timeout: 30_000 });
  await page.getByRole("region", { name: "Result" }).getByText('"finished_by_attempt": 2').waitFor();
  await shot(page, "dev-recovered");

  // The address works once.
  const second = await browser.page();
  await second.goto(login);
  await second.getByText("used already").waitFor();
  expect(await second.getByRole("navigation").count()).toBe(0);
  dev.process.kill("SIGTERM");
  expect(await dev.ended).toBe(0);
});
