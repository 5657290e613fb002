import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJsonText } from "./json.js";
import { toLooseJsonText } from "./json-loose.js";

const loose = (value: unknown, maxBytes = 8192) => JSON.parse(toLooseJsonText(value, maxBytes));

describe("JSON for logs", () => {
  it("keeps what can be kept unchanged", () => {
    expect(loose({ a: [1, "zwei", null, true], b: { c: 0.5 } })).toEqual({
      a: [1, "zwei", null, true],
      b: { c: 0.5 },
    });
  });

  it.each<[string, unknown, unknown]>([
    ["NUL and half a surrogate pair", { a: "x\0\ud800" }, { a: "x\ufffd\ufffd" }],
    ["in keys too", { "\0": 1 }, { "\ufffd": 1 }],
    ["a bigint", { a: 2n ** 70n }, { a: String(2n ** 70n) }],
    ["numbers that are none", [Number.NaN, Number.POSITIVE_INFINITY, 1], ["NaN", "Infinity", 1]],
    ["a function and a symbol", { f() {}, s: Symbol("s") }, { f: "[function]", s: "Symbol(s)" }],
    ["undefined", { a: undefined, b: [undefined], c: 1n }, { b: [null], c: "1" }],
    [
      "an error",
      { e: new RangeError("too far") },
      {
        e: { type: "RangeError", message: "too far", stack: expect.stringMatching(/^RangeError: too far\n/) },
      },
    ],
    [
      "a map, a set and bytes",
      [new Map([[1, 2n]]), new Set([3]), Buffer.alloc(4)],
      [[[1, "2"]], [3], "[4 bytes]"],
    ],
    ["an invalid date", { at: new Date(Number.NaN), n: 1n }, { at: null, n: "1" }],
    [
      "__proto__ as a key",
      JSON.parse('{"__proto__": {"a": 1}, "b": "\\u0000"}'),
      JSON.parse('{"__proto__": {"a": 1}, "b": "\ufffd"}'),
    ],
  ])("replaces %s", (_what, given, kept) => {
    expect(loose(given)).toEqual(kept);
  });

  it("breaks circles, and keeps what is only there twice", () => {
    const shared = { n: 1 };
    const ring: Record<string, unknown> = { first: shared, second: shared };
    ring.self = ring;
    expect(loose(ring)).toEqual({ first: { n: 1 }, second: { n: 1 }, self: "[circular]" });
  });

  it("hides secrets by name, by look and by value, also of classes and across a cut", () => {
    class Client {
      password = "hunter2hunter2";
      url = "postgres://me:pass-word-1@host/db";
    }
    const text = toLooseJsonText({ client: new Client(), key: "abc-own-secret-xyz", apiKey: null }, 8192, [
      "own-secret",
    ]);
    expect(JSON.parse(text)).toEqual({
      client: { password: "[redacted]", url: "postgres://me:[redacted]@host/db" },
      key: "abc-[redacted]-xyz",
      apiKey: null,
    });
    expect(toLooseJsonText(`${"x".repeat(8180)}own-secret`, 20_000, ["own-secret"])).not.toContain("own-s");
  });

  it("survives values that cannot be read", () => {
    const hostile = {
      get a() {
        throw new Error("no");
      },
    };
    expect(loose({ hostile, b: 1 })).toEqual({ hostile: "[unreadable]", b: 1 });
    expect(
      loose({
        toJSON: () => {
          throw new Error("no");
        },
      }),
    ).toBe("[unreadable]");
    expect(loose(Object.create(null))).toEqual({});
  });

  it("cuts depth, width and long texts, and keeps the beginning", () => {
    let deep: unknown = "bottom";
    for (let n = 0; n < 5000; n++) deep = { deep };
    expect(toLooseJsonText(deep, 8192)).toContain("[too deep]");
    expect(loose({ id: 7, text: "ä".repeat(50_000) }).cut).toMatch(/^{"id":7,"text":"ä{1000,}/);
    const wide = Array.from({ length: 100_000 }, (_, n) => n);
    expect(loose(wide).cut).toMatch(/^\[0,1,2,/);
  });

  it("an array that holds another twice, which holds another twice, ends in time", () => {
    let twice: unknown = 1n;
    for (let n = 0; n < 60; n++) twice = [twice, twice];
    expect(toLooseJsonText(twice, 8192).length).toBeLessThanOrEqual(8192);
  });

  it("is always JSON that Postgres can hold, within the limit", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withSparseArray: true,
        }),
        fc.integer({ min: 100, max: 2000 }),
        (value, maxBytes) => {
          const text = toLooseJsonText(value, maxBytes);
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
          parseJsonText(text, { maxBytes, maxDepth: 64 });
        },
      ),
      { numRuns: 2000, endOnFailure: true },
    );
  });
});
