import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { HeldLeases } from "./held-leases.js";
import { LeasePage } from "./lease-page.js";

function share() {
  const page = new LeasePage();
  const held = new HeldLeases();
  held.addPage(page.memory);
  return { page, held };
}

test("the thread finds what the loop holds, and until when it runs", () => {
  const { page, held } = share();
  const [jobId, attemptId] = [randomUUID(), randomUUID()];
  expect(held.all()).toEqual([]);
  page.take(7, jobId, attemptId, 100);
  const taken = { jobId, attemptId, slot: 7, renewedAt: 100, endsAt: undefined };
  expect(held.all()).toMatchObject([taken]);
  page.start(7, 500, 2);
  expect(held.all()).toMatchObject([{ ...taken, endsAt: 500, retryDelaySeconds: 2 }]);
  page.start(7, 500, undefined);
  expect(held.all()).toMatchObject([{ ...taken, endsAt: 500, retryDelaySeconds: undefined }]);
  page.end(7);
  expect(held.all()).toMatchObject([taken]);
  page.drop(7);
  expect(held.all()).toEqual([]);
});

test("what the thread notes of a lease says nothing about the slot's next one", () => {
  const { page, held } = share();
  const take = (now: number) => page.take(0, randomUUID(), randomUUID(), now);
  take(100);
  const [first] = held.all();
  if (!first) throw new Error("nothing held");
  held.renewed(first, 200);
  expect(held.all()).toMatchObject([{ renewedAt: 200 }]);
  expect(held.giveUp(first)).toBe(true);
  expect(held.all()).toEqual([]);
  page.drop(0);
  take(300);
  expect(held.all()).toMatchObject([{ renewedAt: 300 }]);
  expect(held.giveUp(first)).toBe(false);
  expect(held.all()).toMatchObject([{ renewedAt: 300 }]);
});
