import { defineJob, TerminalError } from "oracle-worker";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { faultsFound, layoutShift, settle, shot, sticksOut } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";

// Every page, filled with what users may send: on every screen, for every eye, and never as markup.

const dashboard = useDashboard();
const { db } = dashboard;

const nasty = `<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>"'\``;

const busy = defineJob({
  type: `busy ${nasty}`,
  input: z.object({ note: z.string(), fails: z.boolean() }),
  output: z.object({ note: z.string() }),
  async run({ input, log, progress, artifact, step, effect }) {
    log.info(`log ${nasty}`, { field: nasty });
    progress(0.5, `progress ${nasty}`);
    await step(`step ${nasty}`, () => nasty);
    await effect({ key: `effect ${nasty}`, kind: "idempotent", request: { to: nasty } }, () => nasty);
    await artifact(`artifact ${nasty}`, nasty, { mediaType: "text/html" });
    if (input.fails) throw new TerminalError(`error ${nasty}`);
    return { note: nasty };
  },
});

const jobs: string[] = [];
let paths: [name: string, path: string][] = [];

beforeAll(async () => {
  const queue = `queue ${nasty}`;
  await db.worker({ jobs: [busy], queues: [queue], workerId: `worker ${nasty}` });
  for (const fails of [false, true]) {
    const options = { queue, tenant: `tenant ${nasty}`, key: `key ${fails} ${nasty}` };
    const job = await db.oracle.enqueue(busy, { note: nasty, fails }, options);
    await db.oracle.wait(job.id, { timeoutSeconds: 60 });
    jobs.push(job.id);
  }
  await db.oracle.enqueue(`unserved ${nasty}`, { note: nasty }, { queue });
  await db.oracle.pauseQueue(queue);
  await dashboard.token("viewer", `tenant ${nasty}`, `token ${nasty}`);
  paths = [
    ["overview", "/"],
    ["jobs", "/jobs"],
    ["succeeded", `/jobs/${jobs[0]}`],
    ["failed", `/jobs/${jobs[1]}`],
    ["effects", "/effects"],
    ["queues", "/queues"],
    ["workers", "/workers"],
    ["tenants", "/tenants"],
    ["settings", "/settings"],
  ];
});

describe.each([
  ["a desktop", "desktop", {}],
  ["a desktop in the dark", "desktop-dark", { dark: true }],
  ["a phone", "phone", { width: 360, height: 740 }],
  ["a phone in the dark", "phone-dark", { width: 360, height: 740, dark: true }],
] as const)("on %s", (_, name, screen) => {
  it("every page fits and stays where it is, axe finds nothing serious, and no text becomes markup", {
    timeout: 600_000,
  }, async () => {
    const page = await dashboard.open("/", screen);
    for (const [each, path] of paths) {
      await page.goto(dashboard.url + path);
      await settle(page);
      expect(await faultsFound(page), path).toEqual([]);
      expect(await sticksOut(page), path).toEqual([]);
      expect(await layoutShift(page), path).toBeLessThan(0.1);
      expect(await page.evaluate("globalThis.hit"), path).toBeUndefined();
      expect(await page.locator('img[src="x"], script:not([src]), [onerror]').count(), path).toBe(0);
      await shot(page, `${name}-${each}`, { whole: true });
    }
  });
});

it("shows what users sent as the text it is", async () => {
  const page = await dashboard.open(`/jobs/${jobs[0]}`);
  await settle(page);
  for (const text of ["busy", "queue", "tenant", "log", "progress", "step", "effect", "artifact"]) {
    await page.getByText(`${text} ${nasty}`).first().waitFor();
  }
  await page.getByRole("button", { name: "Preview" }).click();
  await page
    .getByRole("region", { name: `content of artifact ${nasty}, as text` })
    .getByText(nasty)
    .waitFor();
  await page.goto(`${dashboard.url}/jobs/${jobs[1]}`);
  await page.getByText(`error ${nasty}`).first().waitFor();
  await page.goto(`${dashboard.url}/workers`);
  await page.getByText(`worker ${nasty}`).first().waitFor();
  await page.goto(`${dashboard.url}/tenants`);
  await page.getByText(`token ${nasty}`).first().waitFor();
  await page.goto(
    `${dashboard.url}/jobs?text=${encodeURIComponent(nasty)}&type=${encodeURIComponent(nasty)}`,
  );
  await settle(page);
  expect(await page.evaluate("globalThis.hit")).toBeUndefined();
});

it("is dark when the system is, and as chosen when something was chosen", async () => {
  const page = await dashboard.open("/", { dark: true });
  const background = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
  const dark = await background();
  await page.getByRole("button", { name: "light theme" }).click();
  const light = await background();
  expect(light).not.toBe(dark);
  await page.reload();
  await settle(page);
  expect(await background()).toBe(light);
  await page.getByRole("button", { name: "system theme" }).click();
  expect(await background()).toBe(dark);
});

it("opens its menu on a phone, and closes it once a page is chosen", async () => {
  const page = await dashboard.open("/", { width: 360, height: 740 });
  const link = page.getByRole("link", { name: "Workers", exact: true });
  expect(await link.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Menu" }).click();
  await shot(page, "phone-menu");
  await link.click();
  await page.getByRole("heading", { name: "Workers" }).waitFor();
  expect(await link.isVisible()).toBe(false);
});

it("comes with a policy that allows nothing from elsewhere and nothing inline", async () => {
  const response = await fetch(dashboard.url);
  const policy = response.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|\*|https?:|data:/);
});
