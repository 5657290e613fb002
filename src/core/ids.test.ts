import { expect, it } from "vitest";
import { newId } from "./ids.js";

it("ids are unique, well-formed and each later than the one before", () => {
  const ids = Array.from({ length: 50_000 }, newId);
  expect(new Set(ids).size).toBe(50_000);
  expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(ids.toSorted()).toEqual(ids);
});
