import { defineJob } from "oracle-worker";
import { expect, it } from "vitest";
import { z } from "zod";
import { echo } from "../support/jobs.js";
import { shot } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";
import { Gate } from "./support/gate.js";

const dashboard = useDashboard();
const { db } = dashboard;

it("follows a running job live to its end", async () => {
  const gate = new Gate("followed");
  await db.worker({ jobs: [gate.job], queues: ["follow"] });
  const job = await db.oracle.enqueue(gate.job, { name: "me" }, { queue: "follow" });
  const handler = await gate.begun();
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByText("Running").first().waitFor();
  await page.getByText("Lease ends").waitFor();
  handler.progress(0.25, "a quarter");
  handler.log.info("first line", { part: 1 });
  await page.getByText("25 % a quarter").waitFor();
  await page.getByText("first line").waitFor();
  handler.log.warn("second line");
  handler.progress(0.75, "three quarters");
  await page.getByText("second line").waitFor();
  await page.getByText("75 % three quarters").waitFor();
  await shot(page, "job-running");
  gate.open();
  await page.getByRole("region", { name: "Result" }).getByText('"done": "me"').waitFor();
  await page.getByRole("heading", { name: "followed" }).waitFor();
  await page.getByText("Succeeded").first().waitFor();
  // Nothing was loaded anew: the lines of the live stream are still there.
  await page.getByText("second line").waitFor();
  await shot(page, "job-succeeded");
});

it("verifies the hashes of a result", async () => {
  await db.worker({ jobs: [echo], queues: ["verify"] });
  const job = await db.oracle.enqueue(echo, { n: 5 }, { queue: "verify" });
  await job.result({ timeoutSeconds: 60 });
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Verify hashes" }).click();
  await page.getByText("Verified: every hash").waitFor();
  await shot(page, "job-verified");
});

it("cancels a job that runs", async () => {
  const gate = new Gate("cancelled");
  await db.worker({ jobs: [gate.job], queues: ["cancel"] });
  const job = await db.oracle.enqueue(gate.job, { name: "me" }, { queue: "cancel" });
  await gate.begun();
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByText("The running attempt is told to stop").waitFor();
  await shot(page, "job-cancel");
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.getByRole("button", { name: "Retry…" }).waitFor();
  expect((await db.oracle.get(job.id))?.state).toBe("CANCELLED");
});

it("replays a job with edited input, as a new job", async () => {
  await db.worker({ jobs: [echo], queues: ["replay"] });
  const job = await db.oracle.enqueue(echo, { n: 5 }, { queue: "replay" });
  await job.result({ timeoutSeconds: 60 });
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Replay…" }).click();
  const input = page.getByLabel("Input, as JSON");
  await input.fill('{"n": 6');
  expect(
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /Replay/ })
      .isDisabled(),
  ).toBe(true);
  await input.fill('{"n": 6}');
  await shot(page, "job-replay");
  await page.getByRole("button", { name: "Replay with edited input" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/jobs/") && !url.pathname.endsWith(job.id));
  await page.getByRole("region", { name: "Result" }).getByText('"n": 6').waitFor();
  const replayed = await db.oracle.get(new URL(page.url()).pathname.slice("/jobs/".length));
  expect(replayed).toMatchObject({ replayOf: job.id, state: "SUCCEEDED" });
});

const keeper = defineJob({
  type: "keeper",
  input: z.object({}),
  output: z.null(),
  async run({ artifact, step }) {
    await step("measure", () => ({ width: 1 }));
    await artifact("notes.txt", "plain words");
    await artifact("data.json", { deep: { value: 42 } });
    const pixel =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await artifact("dot.png", Buffer.from(pixel, "base64"), { mediaType: "image/png" });
    return null;
  },
});

it("previews artifacts: text, JSON and images", async () => {
  await db.worker({ jobs: [keeper], queues: ["keep"] });
  const job = await db.oracle.enqueue(keeper, {}, { queue: "keep" });
  await job.result({ timeoutSeconds: 60 });
  const page = await dashboard.open(`/jobs/${job.id}`);
  const artifacts = page.getByRole("region", { name: "Artifacts" });
  const previews = artifacts.getByRole("button", { name: "Preview" });
  await previews.nth(2).waitFor();
  for (let left = 3; left > 0; left -= 1) await previews.first().click();
  await artifacts.getByText("plain words").waitFor();
  await artifacts.getByText('"value": 42').waitFor();
  const image = artifacts.getByRole("img", { name: "dot.png" });
  await expect
    .poll(() => image.evaluate((element) => (element as { naturalWidth?: number }).naturalWidth))
    .toBe(1);
  await page.getByRole("region", { name: "Steps" }).getByText("measure").waitFor();
  await shot(page, "job-artifacts", { whole: true });
});
