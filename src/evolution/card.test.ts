import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cardFiles, commitMessage, mergeMetrics, subjectOf } from "./card.js";
import { evaluationSchema } from "./roles.js";

describe("a card's subject", () => {
  test.each([
    ["Make it faster", "Make it faster"],
    ["  Two\tspaces \n\nand a body", "Two spaces"],
    ["", "Change"],
    ["x".repeat(72), "x".repeat(72)],
    ["x".repeat(73), `${"x".repeat(71)}…`],
    [`${"word ".repeat(14)}and more`, `${"word ".repeat(14).trimEnd()}…`],
  ])("of %j is %j", (text, subject) => {
    expect(subjectOf(text)).toBe(subject);
  });

  test("has 1 to 72 characters in one line, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        const subject = subjectOf(text);
        const { length } = [...subject];
        expect(length).toBeGreaterThan(0);
        expect(length).toBeLessThanOrEqual(72);
        expect(subject).not.toMatch(/[\n\r\0]/);
      }),
    );
  });
});

test("a commit's message says what was done and for which job", () => {
  expect(commitMessage("Sort", "By merging", "7")).toBe("Sort\n\nBy merging\n\nEvolution-Job: 7\n");
  expect(commitMessage("Sort", "Sort", "7")).toBe("Sort\n\nEvolution-Job: 7\n");
});

test("a card's files stand in the order of how much they changed", () => {
  const churn = Array.from({ length: 30 }, (_, n) => ({ path: `f${n}`, added: n % 10, deleted: 1 }));
  const { key_files, highlights } = cardFiles(churn);
  expect(key_files).toHaveLength(20);
  expect(key_files.slice(0, 4)).toEqual(["f19", "f29", "f9", "f18"]);
  expect(highlights.map(({ path }) => path)).toEqual(["f19", "f29", "f9", "f18", "f28"]);
});

describe("metrics", () => {
  const read = (metrics: unknown[]) => mergeMetrics(evaluationSchema.parse({ summary: "", metrics }).metrics);

  test("of one name become one: the last value, the details together", () => {
    expect(
      read([
        { name: "b", value: 1, unit: "s", details: { a: 1, b: 1 } },
        { name: "a", value: 5 },
        { name: "b", value: 2, higher_is_better: false, details: { b: 2 } },
      ]),
    ).toEqual([
      { name: "a", value: 5, unit: null, higher_is_better: true, details: null },
      { name: "b", value: 2, unit: "s", higher_is_better: false, details: { a: 1, b: 2 } },
    ]);
  });

  test.each([
    [{ name: "", value: 1 }],
    [{ name: "x".repeat(201), value: 1 }],
    [{ name: "a", value: Number.NaN }],
    [{ name: "a", value: Number.POSITIVE_INFINITY }],
    [{ name: "a", value: "1" }],
    [{ name: "a", value: 1, details: "none" }],
  ])("like %j are refused", (metric) => {
    expect(() => read([metric])).toThrow();
  });

  test("are at most 64", () => {
    const some = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `m${n}`, value: n }));
    expect(read(some(64))).toHaveLength(64);
    expect(() => read(some(65))).toThrow();
  });
});
