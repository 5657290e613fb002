import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoundedBytes, Lines } from "./bytes.js";

/** The lines of a text that arrives in pieces, and whether all of it was taken. */
function split(
  text: string,
  sizes: number[],
  cap: number,
): { lines: string[]; taken: boolean; pending: boolean } {
  const lines: string[] = [];
  const splitter = new Lines(cap, (line) => lines.push(line.toString()));
  const bytes = Buffer.from(text);
  let taken = true;
  for (let at = 0, turn = 0; at < bytes.length && taken; turn++) {
    const end = at + Math.max(1, sizes[turn % sizes.length] ?? 1);
    taken = splitter.push(bytes.subarray(at, end));
    at = end;
  }
  return { lines, taken, pending: splitter.pending };
}

const anySizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 });
const anyLines = fc.array(fc.string({ unit: fc.constantFrom("a", "é", "😀", "{"), maxLength: 12 }));

describe("lines", () => {
  test("are the same, however they arrive", () => {
    fc.assert(
      fc.property(anyLines, anySizes, (lines, sizes) => {
        const text = lines.map((line) => `${line}\n`).join("");
        expect(split(text, sizes, 1000)).toEqual({ lines, taken: true, pending: false });
      }),
    );
  });

  test("up to the cap are taken, and no longer ones, however they arrive", () => {
    fc.assert(
      fc.property(anySizes, fc.boolean(), (sizes, ended) => {
        const end = ended ? "\n" : "";
        expect(split(`${"x".repeat(64)}${end}`, sizes, 64).taken).toBe(true);
        expect(split(`${"x".repeat(65)}${end}`, sizes, 64)).toMatchObject({ taken: false, lines: [] });
      }),
    );
  });
});

describe("bounded bytes", () => {
  test("keep what comes first, and say when something does not fit", () => {
    const bytes = new BoundedBytes(5);
    expect(bytes.append(Buffer.from("abc"))).toBe(true);
    expect(bytes.append(Buffer.from("defg"))).toBe(false);
    expect(bytes.append(Buffer.from("h"))).toBe(false);
    expect(bytes.take().toString()).toBe("abcde");
    expect(bytes.length).toBe(0);
    expect(bytes.append(Buffer.from("again"))).toBe(true);
  });
});
