import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PayloadRejected } from "./errors.js";
import { type JsonLimits, type JsonValue, parseJsonText, sanitizeText, toJsonText } from "./json.js";

/** The error's code, path and message, or "" when nothing is thrown. */
function refusalOf(action: () => unknown): { code: string; path: string | undefined; message: string } | "" {
  try {
    action();
    return "";
  } catch (error) {
    if (!(error instanceof PayloadRejected)) throw error;
    return { code: error.code, path: error.field, message: error.message };
  }
}

function verdict(action: () => unknown): string {
  const refusal = refusalOf(action);
  return refusal && `${refusal.code} ${refusal.path}`;
}

function nested(depth: number): JsonValue {
  let value: JsonValue = 1;
  for (let level = 0; level < depth; level++) value = level % 2 ? { a: value } : [value];
  return value;
}

class Point {
  x = 1;
  y = undefined;
}

const cycle: Record<string, unknown> = { a: { b: [1, {}] } };
(cycle.a as { b: object[] }).b[1] = { c: cycle.a };

let shared: unknown[] = [];
for (let level = 0; level < 60; level++) shared = [shared, shared];

describe("toJsonText", () => {
  test.each<[unknown, string]>([
    [undefined, "null"],
    [{ a: [1, -0, "é\n"], b: undefined, c: null }, '{"a":[1,0,"é\\n"],"c":null}'],
    [[2 ** 60, 1e21, 1e300], "[1152921504606847000,1e+21,1e+300]"],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [new Point(), '{"x":1}'],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [JSON.parse('{"__proto__":{"admin":true}}'), '{"__proto__":{"admin":true}}'],
    ["a backslash before \\u0000 and \\ud800", '"a backslash before \\\\u0000 and \\\\ud800"'],
    ["😀", '"😀"'],
  ])("writes value %#", (value, text) => {
    expect(toJsonText(value)).toBe(text);
  });

  test.each<[unknown, string, RegExp]>([
    [{ a: [1, 2, 3, Number.NaN] }, "$.a[3]", /NaN is no JSON number; send null/],
    [[Number.NEGATIVE_INFINITY], "$[0]", /-Infinity/],
    [{ "odd key": 5n }, '$["odd key"]', /bigint 5n .* string/],
    [{ f() {} }, "$.f", /a function is not JSON/],
    [[Symbol("s")], "$[0]", /a symbol is not JSON/],
    [[1, undefined], "$[1]", /undefined .* send null/],
    [{ m: new Map() }, "$.m", /Object\.fromEntries/],
    [{ s: new Set() }, "$.s", /\[\.\.\.set\]/],
    [{ p: Promise.resolve() }, "$.p", /await/],
    [{ e: new Error("x") }, "$.e", /an? Error is not JSON/],
    [{ b: new Uint8Array(2) }, "$.b", /Uint8Array/],
    [{ d: new Date(Number.NaN) }, "$.d", /invalid Date/],
    [{ t: { toJSON: () => undefined } }, "$.t", /toJSON/],
    [{ a: ["x\0"] }, "$.a[0]", /"x\\u0000" holds a NUL/],
    [{ a: { "b\0": 1 } }, '$.a["b\\u0000"]', /NUL/],
    [["\ud83d"], "$[0]", /surrogate/],
    [{ "\udc00": 1 }, '$["\\udc00"]', /surrogate/],
    [cycle, "$.a.b[1].c", /refers to itself/],
    [
      Object.defineProperty({}, "x", {
        enumerable: true,
        get: () => {
          throw new Error("boom");
        },
      }),
      "$",
      /boom/,
    ],
  ])("refuses value %#", (value, path, message) => {
    expect(refusalOf(() => toJsonText(value, undefined, "input"))).toEqual({
      code: "PAYLOAD_REJECTED",
      path,
      message: expect.stringMatching(message),
    });
  });

  test("names what it refuses", () => {
    expect(refusalOf(() => toJsonText({ n: [Number.NaN] }, undefined, "result"))).toMatchObject({
      message: "The result is refused at $.n[0]: NaN is no JSON number; send null or a string.",
    });
  });

  test("bounds the depth, however deep the value", () => {
    expect(verdict(() => toJsonText(nested(64)))).toBe("");
    expect(verdict(() => toJsonText(nested(65)))).toBe(`PAYLOAD_TOO_DEEP $${"[0].a".repeat(32)}`);
    for (const depth of [6_000, 1_000_000]) {
      expect(refusalOf(() => toJsonText(nested(depth)))).toMatchObject({ code: "PAYLOAD_TOO_DEEP" });
    }
    const limits: JsonLimits = { maxBytes: 1000, maxDepth: 0 };
    expect([verdict(() => toJsonText("x", limits)), verdict(() => toJsonText([], limits))]).toEqual([
      "",
      "PAYLOAD_TOO_DEEP $",
    ]);
  });

  test("bounds the size in bytes of UTF-8", () => {
    const limits: JsonLimits = { maxBytes: 12, maxDepth: 64 };
    expect(verdict(() => toJsonText("ééééé", limits))).toBe("");
    expect(refusalOf(() => toJsonText("éééééé", limits))).toEqual({
      code: "PAYLOAD_TOO_LARGE",
      path: "$",
      message: expect.stringMatching(/is 14 bytes of JSON, and the limit is 12;/),
    });
    expect(verdict(() => toJsonText(["x".repeat(1e6), "x".repeat(1e8)]))).toBe("PAYLOAD_TOO_LARGE $");
    expect(verdict(() => toJsonText(shared))).toBe("PAYLOAD_TOO_LARGE $");
  });

  test("loses nothing", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        expect(parseJsonText(toJsonText(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("parseJsonText", () => {
  test.each<[string, JsonValue]>([
    [' {"a":[1,2.5,"x"], "b":null} ', { a: [1, 2.5, "x"], b: null }],
    ["[9007199254740992,-9007199254740992,1e21,1E2,0e999]", [2 ** 53, -(2 ** 53), 1e21, 100, 0]],
    ["[0.1,0.1000000000000000055,123456789.12345678901234567890]", [0.1, 0.1, 123456789.12345679]],
    ["[9007199254740993.5,12345678901234567000,5e-324]", [9007199254740994, 12345678901234567000, 5e-324]],
    [String.raw`["\u00e9\ud83d\ude00\\u0000"]`, ["é😀\\u0000"]],
    [`0.${"0".repeat(400)}1e401`, 1],
  ])("reads text %#", (text, value) => {
    expect(parseJsonText(text)).toEqual(value);
  });

  test.each<[string, string, RegExp]>([
    [
      '{"a":12345678901234567890}',
      "$.a",
      /12345678901234567890 would change to 12345678901234567000; .*string/,
    ],
    ["[0,9007199254740993]", "$[1]", /would change to 9007199254740992/],
    ["[-9007199254740993.00]", "$[0]", /would change to -9007199254740992/],
    ["[90071992547409930e-1]", "$[0]", /would change/],
    [`[1${"01".repeat(100_000)}]`, "$[0]", /too large/],
    ["[[1e400]]", "$[0][0]", /1e400 is too large/],
    ["[-1e-400]", "$[0]", /would become 0/],
    [`[0.${"0".repeat(400)}1]`, "$[0]", /would become 0/],
    [String.raw`{"a":"\u0000"}`, "$.a", /NUL/],
    [String.raw`{"\u0000":1}`, String.raw`$["\u0000"]`, /NUL/],
    [String.raw`["\uD83D"]`, "$[0]", /surrogate/],
    ['["\ud83d"]', "$[0]", /surrogate/],
    ['{"a":1,"b":{"c":1,"c":2}}', "$.b.c", /the key "c" is there twice/],
    [String.raw`{"a":1,"\u0061":1}`, "$.a", /twice/],
    ['{"__proto__":1,"__proto__":2}', "$.__proto__", /twice/],
  ])("refuses text %#", (text, path, message) => {
    expect(refusalOf(() => parseJsonText(text))).toEqual({
      code: "PAYLOAD_REJECTED",
      path,
      message: expect.stringMatching(message),
    });
  });

  test.each([
    ["", "line 1, column 1 needs a value, but the text ends"],
    ['{"a": [1,\n  2, }', 'line 2, column 6 needs a value, but there is "}"'],
    ["{'a':1}", `line 1, column 2 needs a key in double quotes, but there is "'"`],
    ['{"a" 1}', 'line 1, column 6 needs ":", but there is "1"'],
    ["[1 2]", 'line 1, column 4 needs "," or "]", but there is "2"'],
    ['{"a":1}x', 'line 1, column 8 needs the end of the text, but there is "x"'],
    ['"abc', "line 1, column 5 needs a closing quote, but the text ends"],
    ['"a\tb"', "line 1, column 3 needs an escape such as \\n, but there is U+0009"],
    ["\ufeff{}", "line 1, column 1 needs a value, but there is U+FEFF"],
    ["[NaN]", 'line 1, column 2 needs a value, but there is "N"'],
  ])("says where text %# is malformed", (text, where) => {
    expect(refusalOf(() => parseJsonText(text, undefined, "input"))).toEqual({
      code: "INVALID_JSON",
      path: "$",
      message: `The input is not JSON: ${where}.`,
    });
  });

  test("bounds size and depth before it parses", () => {
    expect(verdict(() => parseJsonText(`${"[".repeat(64)}${"]".repeat(64)}`))).toBe("");
    expect(verdict(() => parseJsonText("[".repeat(1_000_000)))).toBe(`PAYLOAD_TOO_DEEP $${"[0]".repeat(64)}`);
    expect(verdict(() => parseJsonText("[".repeat(2_000_000)))).toBe("PAYLOAD_TOO_LARGE $");
    expect(verdict(() => parseJsonText('["[[[[", "\\"[["]', { maxBytes: 20, maxDepth: 1 }))).toBe("");
  });

  test("accepts what JSON.parse accepts, but for what it refuses on purpose", () => {
    const edits = fc.array(
      fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.constantFrom(...'{}[]":,\\eE+-.01u \n')),
      { maxLength: 3 },
    );
    const broken = fc.tuple(fc.json({ stringUnit: "binary" }), edits).map(([text, changes]) =>
      changes.reduce((now, [place, cut, put]) => {
        const at = place % (now.length + 1);
        return now.slice(0, at) + put + now.slice(at + cut);
      }, text),
    );
    fc.assert(
      fc.property(broken, (text) => {
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          expect(["INVALID_JSON", "PAYLOAD_REJECTED"]).toContain(
            (refusalOf(() => parseJsonText(text)) || { code: "" }).code,
          );
          return;
        }
        const refusal = refusalOf(() => parseJsonText(text));
        if (refusal) expect(refusal.code).toBe("PAYLOAD_REJECTED");
        else expect(parseJsonText(text)).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("sanitizeText", () => {
  test("replaces what Postgres cannot store and leaves the rest", () => {
    expect(sanitizeText("a\0b\ud800c\udc00 é😀\n")).toBe("a\ufffdb\ufffdc\ufffd é😀\n");
  });

  test("cuts with a mark, never through a surrogate pair", () => {
    expect(sanitizeText("x".repeat(8192))).toHaveLength(8192);
    expect(sanitizeText("x".repeat(8193))).toBe(`${"x".repeat(8185)}… [cut]`);
    expect(sanitizeText("😀".repeat(10), 16)).toBe(`${"😀".repeat(4)}… [cut]`);
    expect(sanitizeText("abcdef", 3)).toBe("… [");
  });
});
