import { it } from "vitest";
import { settle, shot } from "./support/browser.js";
import { useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();

it("says what to do next where there is nothing yet", async () => {
  const page = await dashboard.open("/");
  const pages = [
    ["overview", "/", "Nothing does"],
    ["jobs", "/jobs", "oracle-worker enqueue"],
    ["filtered", "/jobs?state=FAILED_TERMINAL", "No job fits these filters"],
    ["effects", "/effects", "No effects here"],
    ["queues", "/queues", "oracle-worker enqueue"],
    ["workers", "/workers", "oracle-worker work"],
    ["missing-job", "/jobs/01a1e227-0000-7000-8000-000000000000", "oracle-worker jobs list"],
    ["missing-page", "/nowhere", "There is no page at this address"],
  ] as const;
  for (const [name, path, words] of pages) {
    await page.goto(dashboard.url + path);
    await settle(page);
    await page.getByText(words).first().waitFor();
    await shot(page, `empty-${name}`);
  }
});
