import { expect, it } from "vitest";
import { echo } from "../support/jobs.js";
import { shot } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();
const { db } = dashboard;

it("pauses a queue, so that nothing starts, and resumes it", async () => {
  await db.worker({ jobs: [echo], queues: ["mails"] });
  await (await db.oracle.enqueue(echo, { n: 0 }, { queue: "mails" })).result({ timeoutSeconds: 60 });
  await db.oracle.enqueue(echo, { n: 1 }, { queue: "waiting-only" });
  await db.oracle.pauseQueue("mails");
  await db.oracle.resumeQueue("mails");
  const page = await dashboard.open("/queues");
  const row = page.getByRole("row").filter({ hasText: "mails" });
  await row.getByText("Open").waitFor();
  await row.getByRole("button", { name: "Pause… mails" }).click();
  await page.getByText("No worker starts another job of it").waitFor();
  await page.getByRole("button", { name: "Pause the queue" }).click();
  await row.getByText("Paused").waitFor();
  await shot(page, "queue-paused");
  const job = await db.oracle.enqueue(echo, { n: 2 }, { queue: "mails" });
  await row.getByRole("cell", { name: "1", exact: true }).waitFor();
  expect((await db.oracle.get(job.id))?.state).toBe("PENDING");
  await row.getByRole("button", { name: "Resume… mails" }).click();
  await page.getByText("1 job ready now").waitFor();
  await page.getByRole("button", { name: "Resume the queue" }).click();
  expect(await job.result({ timeoutSeconds: 60 })).toEqual({ n: 2 });
  await row.getByText("Open").waitFor();
});
