import { expect, it } from "vitest";
import { shot } from "./support/browser.js";
import { logIn, useDashboard } from "./support/dashboard.js";

const dashboard = useDashboard();

it("logs in with a token, stays logged in, and logs out", async () => {
  const page = await dashboard.browser.page();
  await page.goto(`${dashboard.url}/jobs`);
  await page.getByLabel("Token").waitFor();
  await shot(page, "login");
  await logIn(page, await dashboard.token("operator"));
  // The address asked for before the login is where it leads.
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Jobs" }).waitFor();
  const cookies = await page.context().cookies();
  expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  await page.reload();
  await page.getByLabel("Token").waitFor();
});

it("says that a wrong token is wrong", async () => {
  const page = await dashboard.browser.page();
  await page.goto(dashboard.url);
  await page.getByLabel("Token").fill("not-a-token");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").filter({ hasText: /token/i }).waitFor();
  expect(await page.getByRole("navigation").count()).toBe(0);
});
