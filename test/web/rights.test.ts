import { expect, it } from "vitest";
import { echo } from "../support/jobs.js";
import { shot } from "./support/browser.js";
import { logIn, useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();
const { db } = dashboard;

it("a viewer sees no buttons that change anything", async () => {
  const job = await db.oracle.enqueue(echo, { n: 1 }, { queue: "seen" });
  await db.oracle.pauseQueue("seen");
  const page = await dashboard.open("/jobs", { role: "viewer" });
  await page.getByRole("link", { name: /…/ }).first().waitFor();
  const changing = () =>
    page
      .getByRole("main")
      .getByRole("button", {
        name: /retry|cancel|replay|approve|reject|resolve|pause|resume|limits|token|tenant/i,
      })
      .count();
  expect(await changing()).toBe(0);
  await page.goto(`${dashboard.url}/jobs/${job.id}`);
  await page.getByRole("region", { name: "About this job" }).waitFor();
  expect(await changing()).toBe(0);
  await shot(page, "viewer-job");
  await page.goto(`${dashboard.url}/queues`);
  await page.getByRole("cell", { name: "seen" }).waitFor();
  expect(await changing()).toBe(0);
  await page.goto(`${dashboard.url}/tenants`);
  await page.getByRole("region", { name: "Shares and limits" }).waitFor();
  expect(await changing()).toBe(0);
  // The same page shows them to an operator: the search for buttons is not blind.
  const operator = await dashboard.open(`/jobs/${job.id}`, { role: "operator" });
  await operator.getByRole("button", { name: "Cancel…" }).waitFor();
});

it("a tenant sees only its own", async () => {
  const theirs = await db.oracle.enqueue(echo, { n: 1 }, { tenant: "team-a", queue: "a-queue" });
  const ours = await db.oracle.enqueue(echo, { n: 2 }, { tenant: "team-b", queue: "b-queue" });
  const page = await dashboard.open("/jobs", { role: "admin", tenant: "team-b" });
  await page.locator(`a[href="/jobs/${ours.id}"]`).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  expect(await page.getByRole("main").textContent()).not.toContain("team-a");
  await shot(page, "tenant-jobs");
  await page.goto(`${dashboard.url}/jobs/${theirs.id}`);
  await page.getByText("This job cannot be shown").waitFor();
  await page.goto(`${dashboard.url}/queues`);
  await page.getByRole("cell", { name: "b-queue" }).waitFor();
  expect(await page.getByRole("main").textContent()).not.toContain("a-queue");
  // Pausing stops every tenant's jobs, workers and settings belong to nobody: not for one tenant's token.
  expect(await page.getByRole("button", { name: /Pause/ }).count()).toBe(0);
  const pages = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  expect(await pages.allTextContents()).toEqual(["Overview", "Jobs", "Effects", "Queues", "Tenants"]);
});

it("makes a token whose secret is shown once, and revokes it", async () => {
  const page = await dashboard.open("/tenants");
  await page.getByRole("button", { name: "New token…" }).click();
  await page.getByLabel("Name").fill("a colleague");
  await page.getByLabel("Role").selectOption("operator");
  await shot(page, "token-new");
  await page.getByRole("button", { name: "Make the token" }).click();
  const secret = (await page.getByRole("dialog").locator("code").textContent()) ?? "";
  await page.getByRole("button", { name: "I have copied it" }).click();
  const row = page.getByRole("row").filter({ hasText: "a colleague" });
  await row.getByText("Good").waitFor();
  expect(await page.content()).not.toContain(secret);
  await shot(page, "tenants");
  const colleague = await dashboard.browser.page();
  await colleague.goto(dashboard.url);
  await logIn(colleague, secret);
  await row.getByRole("button", { name: /Revoke/ }).click();
  await page.getByRole("button", { name: "Revoke the token" }).click();
  await row.getByText("Revoked").waitFor();
  // Whoever was logged in with it finds themselves at the login.
  await colleague.getByLabel("Token").waitFor();
});
