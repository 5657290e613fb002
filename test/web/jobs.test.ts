import { expect, it } from "vitest";
import { echo, flaky } from "../support/jobs.js";
import { until } from "../support/oracle.js";
import { shot } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();
const { db } = dashboard;

it("filters to failures and retries them in bulk, with their number before the click", async () => {
  await db.worker({ jobs: [flaky, echo], queues: ["bulk"] });
  const failing = { failures: 1, how: "terminal" } as const;
  const inputs = [failing, failing, failing];
  const failed = await db.oracle.enqueueMany(flaky, inputs, { queue: "bulk" });
  await db.oracle.enqueue(echo, { n: 1 }, { queue: "bulk" });
  for (const job of failed) await db.oracle.wait(job.id, { timeoutSeconds: 60 });
  const page = await dashboard.open("/jobs?queue=bulk");
  await page.getByRole("cell", { name: "Succeeded" }).waitFor();
  await page.getByRole("link", { name: "Failed", exact: true }).click();
  await until("three rows", async () => (await page.locator("tbody tr").count()) === 3, 60_000);
  expect(new URL(page.url()).search).toBe("?queue=bulk&state=FAILED_TERMINAL");
  await shot(page, "jobs-failed");
  await page.getByRole("button", { name: "Retry all found…" }).click();
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Retry 3 jobs" });
  await confirm.waitFor();
  await shot(page, "jobs-bulk-retry");
  await confirm.click();
  await page.getByText("3 jobs retried").waitFor();
  // They succeed in their second attempt, so the list of failures runs empty.
  for (const job of failed)
    expect((await db.oracle.wait(job.id, { timeoutSeconds: 60 }))?.state).toBe("SUCCEEDED");
  await page.getByRole("button", { name: "3 moved on: show" }).click();
  await page.getByText("No job fits these filters").waitFor();
});

it("cancels in bulk what the filter finds, and nothing else", async () => {
  await db.oracle.enqueueMany(echo, [{ n: 1 }, { n: 2 }], { queue: "unserved-a" });
  const other = await db.oracle.enqueue(echo, { n: 3 }, { queue: "unserved-b" });
  const page = await dashboard.open("/jobs?queue=unserved-a&state=PENDING");
  await page.getByRole("button", { name: "Cancel all found…" }).click();
  await page.getByRole("button", { name: "Cancel 2 jobs" }).click();
  await page.getByText("2 jobs cancelled").waitFor();
  expect((await db.oracle.get(other.id))?.state).toBe("PENDING");
});

it("keeps its rows where they are while jobs come, and shows the new ones on request", async () => {
  await db.oracle.enqueueMany(echo, [{ n: 1 }, { n: 2 }], { queue: "steady" });
  const page = await dashboard.open("/jobs?queue=steady");
  const ids = () => page.locator("tbody a").evaluateAll((links) => links.map((link) => link.title));
  await until("two rows", async () => (await ids()).length === 2, 60_000);
  const before = await ids();
  const place = await page.locator("tbody tr").first().boundingBox();
  const more = await db.oracle.enqueue(echo, { n: 3 }, { queue: "steady" });
  const button = page.getByRole("button", { name: "1 new: show" });
  await button.waitFor();
  expect(await ids()).toEqual(before);
  expect(await page.locator("tbody tr").first().boundingBox()).toEqual(place);
  await shot(page, "jobs-steady");
  await button.click();
  await until("three rows", async () => (await ids()).length === 3, 60_000);
  expect(await ids()).toEqual([more.id, ...before]);
});

it("walks through the pages of a long list", async () => {
  const inputs = Array.from({ length: 60 }, (_, n) => ({ n }));
  await db.oracle.enqueueMany(echo, inputs, { queue: "long" });
  const page = await dashboard.open("/jobs?queue=long");
  await until("a full page", async () => (await page.locator("tbody tr").count()) === 50, 60_000);
  await page.getByRole("link", { name: "Older" }).click();
  await until("the rest", async () => (await page.locator("tbody tr").count()) === 10, 60_000);
  await page.goBack();
  await until("the first page again", async () => (await page.locator("tbody tr").count()) === 50, 60_000);
});

it("is steered by keyboard: search, rows, Enter, Escape", async () => {
  const job = await db.oracle.enqueue(echo, { n: 7 }, { queue: "keys" });
  const page = await dashboard.open("/jobs?queue=keys");
  await page.locator("tbody tr").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/jobs/${job.id}`);
  await page.keyboard.press("/");
  await page.getByRole("combobox").fill("queu");
  await page.getByRole("option", { name: /Queues/ }).waitFor();
  await shot(page, "search");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/queues");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill(job.id);
  await page.getByRole("option", { name: /open this job/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("combobox").waitFor({ state: "detached" });
  expect(page.url()).toBe(`${dashboard.url}/queues`);
});
