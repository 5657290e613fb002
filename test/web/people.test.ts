import { defineJob } from "oracle-worker";
import { expect, it } from "vitest";
import { z } from "zod";
import { until } from "../support/oracle.js";
import { runCli } from "../support/process.js";
import { shot } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";

// What only a person can decide: found on the overview, settled on the job's page.

const dashboard = useDashboard();
const { db } = dashboard;
const handlers = new URL("support/handlers.mjs", import.meta.url).pathname;

it("resolves an effect in doubt, and the job goes on without sending it again", async () => {
  const job = await db.oracle.enqueue("charge_card", { cents: 1250 }, { queue: "charge" });
  const work = runCli(["work", "--handlers", handlers, "--queues", "charge"], { DATABASE_URL: db.url });
  await until("the job is held", async () => (await db.oracle.get(job.id))?.holdReason, 120_000);
  const page = await dashboard.open("/");
  await page.getByRole("listitem").filter({ hasText: "1 effect in doubt" }).getByRole("link").click();
  await page.getByRole("heading", { name: "Effects" }).waitFor();
  await shot(page, "effects");
  await page.locator(`a[href="/jobs/${job.id}"]`).click();
  await page.getByText("Held: effect in doubt").waitFor();
  await page.getByRole("button", { name: "Resolve…" }).click();
  await page.getByLabel("How you know").fill("receipt 7 is in the provider's console");
  await page.getByLabel(/What the handler shall get/).fill('{"receipt": "7"}');
  await shot(page, "effect-resolve");
  await page.getByRole("button", { name: "Resolve", exact: true }).click();
  await page.getByRole("region", { name: "Result" }).getByText('"receipt": "7"').waitFor();
  await page.getByText("receipt 7 is in the provider's console").waitFor();
  await shot(page, "effect-resolved");
  work.process.kill("SIGTERM");
  await work.ended;
});

it("shows both attempts after a crash, with the cause of the first", async () => {
  const job = await db.oracle.enqueue("fragile", {}, { queue: "fragile" });
  const work = runCli(["work", "--handlers", handlers, "--queues", "fragile"], { DATABASE_URL: db.url });
  await job.result({ timeoutSeconds: 120 });
  const page = await dashboard.open(`/jobs/${job.id}`);
  const attempts = page.getByRole("region", { name: "Attempts" }).getByRole("listitem");
  await attempts.nth(1).waitFor();
  expect(await attempts.first().textContent()).toMatch(/Attempt 1.*Lease expired.*WORKER_CRASHED/s);
  expect(await attempts.nth(1).textContent()).toMatch(/Attempt 2.*Succeeded/s);
  await shot(page, "job-after-crash");
  work.process.kill("SIGTERM");
  await work.ended;
});

const mailing = defineJob({
  type: "mailing",
  input: z.object({ to: z.array(z.string()) }),
  output: z.object({ sent: z.int() }),
  approve: "person",
  async run({ input, effect, plan }) {
    const mails = input.to.map((to) => ({
      key: `mail ${to}`,
      kind: "idempotent" as const,
      request: { to },
    }));
    await plan(mails);
    for (const mail of mails) await effect(mail, () => ({ accepted: true }));
    return { sent: mails.length };
  },
});

it("approves a plan, which is then carried out", async () => {
  await db.worker({ jobs: [mailing], queues: ["plan"] });
  const job = await db.oracle.enqueue(mailing, { to: ["anna", "ben"] }, { queue: "plan" });
  await until("the plan is made", async () => (await db.oracle.get(job.id))?.holdReason, 60_000);
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByText("Held: awaiting approval").waitFor();
  await page.getByText("mail anna").waitFor();
  await page.getByRole("button", { name: "Approve…" }).click();
  await page.getByText("carries out 2 planned effects").waitFor();
  await shot(page, "plan-approve");
  await page.getByRole("button", { name: "Approve the plan" }).click();
  await page.getByRole("region", { name: "Result" }).getByText('"sent": 2').waitFor();
  await shot(page, "plan-carried-out");
});

it("rejects a plan, and none of it is carried out", async () => {
  await db.worker({ jobs: [mailing], queues: ["refuse"] });
  const job = await db.oracle.enqueue(mailing, { to: ["everybody"] }, { queue: "refuse" });
  await until("the plan is made", async () => (await db.oracle.get(job.id))?.holdReason, 60_000);
  const page = await dashboard.open(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Reject…" }).click();
  await page.getByLabel("Why").fill("too many addressees");
  await page.getByRole("button", { name: "Reject the plan" }).click();
  await page.getByText("too many addressees").first().waitFor();
  const effects = await db.sql("SELECT state, dispatches FROM oracle.effects WHERE job_id = $1", [job.id]);
  expect(effects).toMatchObject([{ dispatches: 0 }]);
});
