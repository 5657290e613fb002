import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { type ArrayForm, binary, plainArray, written } from "../src/store/arrays.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();

const lists: [string, string, ArrayForm["texts"], (string | null)[]][] = [binary, written].flatMap((form) => [
  ["texts", "text", form.texts, ["a", "", 'quotes " and \\ and {,}', "ünïcödé 𝄞\n", "x".repeat(100_000)]],
  ["absent texts", "text", form.texts, [null, "between", null, "NULL"]],
  ["ids", "uuid", form.ids as ArrayForm["texts"], Array.from({ length: 50 }, () => randomUUID())],
  ["nothing", "text", form.texts, []],
]);

it.each(lists)("a list of %s arrives as it was sent", async (_, type, toArray, values) => {
  expect(await db.sql(`SELECT $1::${type}[] AS list`, [toArray(values)])).toEqual([{ list: values }]);
});

it("so does one of numbers or booleans", async () => {
  const values = [plainArray([0, -1, 2_000_000]), plainArray([true, false])];
  expect(await db.sql("SELECT $1::integer[] AS numbers, $2::boolean[] AS booleans", values)).toEqual([
    { numbers: [0, -1, 2_000_000], booleans: [true, false] },
  ]);
});
