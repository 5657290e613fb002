import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { plainArray, textArray, uuidArray } from "../src/store/arrays.js";
import { useTestDatabase } from "./support/oracle.js";

const db = useTestDatabase();

it.each([
  ["texts", "text", textArray, ["a", "", 'quotes " and \\ and {,}', "ünïcödé 𝄞", "x".repeat(100_000)]],
  ["absent texts", "text", textArray, [null, "between", null]],
  ["ids", "uuid", uuidArray, Array.from({ length: 50 }, () => randomUUID())],
  ["numbers", "integer", plainArray, [0, -1, 2_000_000]],
  ["booleans", "boolean", plainArray, [true, false]],
  ["nothing", "text", textArray, []],
] as [string, string, (values: unknown[]) => unknown, unknown[]][])(
  "a list of %s arrives as it was sent",
  async (_, type, toArray, values) => {
    expect(await db.sql(`SELECT $1::${type}[] AS list`, [toArray(values)])).toEqual([{ list: values }]);
  },
);
