import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, contentHash, sha256Hex, specHash } from "./hash.js";
import { type JsonValue, parseJsonText, toJsonText } from "./json.js";

describe("canonicalJson", () => {
  // RFC 8785, appendix B: the bits of a double and its text.
  test.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("prints the double %s as %s", (bits, printed) => {
    expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(printed);
  });

  test("sorts keys by UTF-16 code units (RFC 8785, 3.2.3)", () => {
    const example = String.raw`{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }`;
    const canonical = canonicalJson(JSON.parse(example));
    expect(canonical.match(/:"\w+/g)).toEqual(
      ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"].map((word) => `:"${word}`),
    );
  });

  test("writes numbers, escapes and literals anew (RFC 8785, 3.2.2)", () => {
    const example = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalJson(JSON.parse(example))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  test("agrees with the canonicalize package", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(canonicalJson(value as JsonValue)).toBe(canonicalize(value));
      }),
      { numRuns: 1000 },
    );
  });

  test("is what the value's JSON text would give, toJSON and undefined included", () => {
    const value = {
      z: undefined,
      when: new Date(0),
      point: { toJSON: () => ({ y: 1, x: [Buffer.from("a")] }) },
    };
    const stored = parseJsonText(toJsonText(value));
    expect(canonicalJson(value as unknown as JsonValue)).toBe(canonicalJson(stored));
    expect(canonicalJson(undefined as unknown as JsonValue)).toBe(toJsonText(undefined));
  });

  test("keeps an own __proto__ key", () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1},"b":1}');
  });
});

// Made with Python: hashlib.sha256(text.encode()).hexdigest() over canonical texts written by hand.
describe("golden hashes", () => {
  test("of texts and values", () => {
    expect(sha256Hex("null")).toBe("74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b");
    expect(contentHash({ bullets: ["a", "b"] })).toBe(
      "33caf318ba6313fda3b23d15b92dbe56b9004d7683211046f67cf28d62b5656e",
    );
  });

  test.each([
    // {"handler_version":null,"input":{},"job_type":"noop","v":1}
    [{ jobType: "noop", input: {} }, "384fe8f03f793ab93fee4d63017a1ea566664bad4b74325d1699f56a73da4e58"],
    // {"handler_version":null,"input":null,"job_type":"noop","v":1}
    [{ jobType: "noop", input: null }, "60e533fbb5b168bf73edee49eac55b270ab7433986312e42a6dca52ba42413f4"],
    // {"handler_version":null,"input":{"text":"hello","top":3},"job_type":"summarize_text","v":1}
    [
      { jobType: "summarize_text", input: { top: 3, text: "hello" } },
      "e5bcf2e2f441ac3eda466ec293297f3b3ee0d687cdb0ae407ea59d5a55c3b4fc",
    ],
    // {"handler_version":"2024-06-01","input":{"text":"hello","top":3},"job_type":"summarize_text","v":1}
    [
      { jobType: "summarize_text", input: { top: 3, text: "hello" }, handlerVersion: "2024-06-01" },
      "fa0602f8c36e8333281e0ef1951b15748c01d6893a05a195f371bce976f2dbb6",
    ],
    // {"handler_version":null,"input":{"\n":[1e+23,1e-7,-0.5,9007199254740992],"a":"Zürich \"1\"",
    //  "😀":null,"דּ":true},"job_type":"übung","v":1}, on one line; the last key is U+FB33
    [
      {
        jobType: "übung",
        input: { "\ufb33": true, "😀": null, a: 'Zürich "1"', "\n": [1e23, 1e-7, -0.5, 2 ** 53] },
        handlerVersion: null,
      },
      "220e74575545f7fa5bdb706bf77afc21eb385ede97ce3395d43992ab0db60b40",
    ],
  ])("of specification %#", (spec, hash) => {
    expect(specHash(spec as Parameters<typeof specHash>[0])).toBe(hash);
  });
});
