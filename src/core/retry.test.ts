import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ErrorCode, errorCodes, OracleError, RetryableError, TerminalError } from "./errors.js";
import { type Backoff, defaultBackoff, retryAfterOf, retryDelaySeconds, toStoredError } from "./retry.js";

const most = () => 1;
const delays = (backoff: Partial<Backoff>, tries: number[], random = most) =>
  tries.map((count) => retryDelaySeconds({ ...defaultBackoff, ...backoff }, count, 0, random));

describe("the delay before the next attempt", () => {
  test.each([
    ["exponential", [5, 10, 20, 40]],
    ["linear", [5, 10, 15, 20]],
    ["fixed", [5, 5, 5, 5]],
  ] as const)("of %s backoff grows with the tries", (kind, expected) => {
    expect(delays({ kind }, [1, 2, 3, 4])).toEqual(expected);
  });

  test("stops growing at the cap, after any number of tries", () => {
    expect(delays({ kind: "exponential" }, [10, 11, 1000, 5000])).toEqual([2560, 3600, 3600, 3600]);
    expect(delays({ kind: "linear" }, [719, 720, 721])).toEqual([3595, 3600, 3600]);
    expect(delays({ kind: "fixed", baseSeconds: 7200 }, [1])).toEqual([3600]);
  });

  test("is never negative, also before the first try that counted", () => {
    expect(delays({ kind: "linear" }, [0, -3])).toEqual([5, 5]);
    expect(delays({ kind: "exponential" }, [0, -3])).toEqual([5, 5]);
  });

  test("has full jitter when it is exponential, from nothing to the whole", () => {
    expect(delays({}, [3], () => 0)).toEqual([0]);
    expect(delays({}, [3], () => 0.25)).toEqual([5]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), (tries) => {
        const delay = retryDelaySeconds(defaultBackoff, tries);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThan(Math.min(3600, 5 * 2 ** (tries - 1)));
      }),
    );
    expect(new Set(Array.from({ length: 50 }, () => retryDelaySeconds(defaultBackoff, 5))).size).toBe(50);
  });

  test("has no jitter when it is linear or fixed", () => {
    expect(delays({ kind: "linear" }, [2], () => 0)).toEqual([10]);
    expect(delays({ kind: "fixed" }, [2], () => 0)).toEqual([5]);
  });

  test("is the Retry-After when that is longer, past the cap too", () => {
    const fixed: Backoff = { ...defaultBackoff, kind: "fixed" };
    expect(retryDelaySeconds(fixed, 1, 30)).toBe(30);
    expect(retryDelaySeconds(fixed, 1, 2)).toBe(5);
    expect(retryDelaySeconds(fixed, 1, 7200)).toBe(7200);
    expect(retryDelaySeconds(defaultBackoff, 1, 30, () => 0)).toBe(30);
  });
});

test("only a RetryableError carries a Retry-After", () => {
  expect(retryAfterOf(new RetryableError("busy", { retryAfterSeconds: 7 }))).toBe(7);
  expect(retryAfterOf(new RetryableError("busy"))).toBe(0);
  expect(retryAfterOf(Object.assign(new Error("no"), { retryAfterSeconds: 7 }))).toBe(0);
  expect(retryAfterOf(undefined)).toBe(0);
});

describe("an error as the tables keep it", () => {
  test("is terminal by these codes and by no other", () => {
    const codes = Object.keys(errorCodes) as ErrorCode[];
    expect(codes.filter((code) => !toStoredError(new OracleError(code, "m")).retryable).sort()).toEqual([
      "DEADLINE_EXCEEDED",
      "EFFECT_CONFLICT",
      "EFFECT_NOT_PLANNED",
      "EFFECT_OPEN",
      "EVOLUTION_UNCHANGED",
      "HANDLERS_INVALID",
      "INPUT_INVALID",
      "INVALID_ARGUMENT",
      "OUTPUT_INVALID",
      "OUTPUT_REJECTED",
      "PAYLOAD_REJECTED",
      "PAYLOAD_TOO_DEEP",
      "PAYLOAD_TOO_LARGE",
      "PLAN_REJECTED",
      "STEP_REPEATED",
      "UNSUPPORTED_JOB_TYPE",
    ]);
  });

  test("is what the handler says: terminal, or retryable", () => {
    const said = { code: "HANDLER_ERROR", message: "m" };
    expect(toStoredError(new TerminalError("m"))).toMatchObject({ ...said, retryable: false });
    expect(toStoredError(new RetryableError("m"))).toMatchObject({ ...said, retryable: true });
  });

  test("keeps an unknown exception's name and stack, and is retryable", () => {
    const stored = toStoredError(new RangeError("too far"));
    expect(stored).toMatchObject({
      code: "HANDLER_ERROR",
      name: "RangeError",
      message: "too far",
      retryable: true,
    });
    expect(stored.stack).toMatch(/^RangeError: too far\n/);
    expect(toStoredError(new TypeError()).message).toBe("TypeError");
  });

  test("names the field, and has no stack where the code says it all", () => {
    const stored = toStoredError(new OracleError("INPUT_INVALID", "m", { field: "$.a" }));
    expect(stored).toEqual({
      code: "INPUT_INVALID",
      name: "OracleError",
      message: "m",
      field: "$.a",
      retryable: false,
    });
  });

  const circular: { self?: unknown } = {};
  circular.self = circular;
  test.each([
    ["a string", "just a string", "just a string"],
    ["an empty string", "", ""],
    ["nothing", undefined, "threw undefined"],
    ["null", null, "threw null"],
    ["an object", { status: 503 }, 'threw {"status":503}'],
    ["a symbol", Symbol("odd"), "threw Symbol(odd)"],
    ["a circular object", circular, "threw a value that cannot be shown as JSON"],
    ["a bigint", 1n, "threw a value that cannot be shown as JSON"],
  ])("can be %s", (_what, thrown, message) => {
    expect(toStoredError(thrown)).toEqual({ code: "HANDLER_ERROR", message, retryable: true });
  });

  test("holds nothing that Postgres would refuse", () => {
    const error = new OracleError("INPUT_INVALID", "nul \0 lone \ud800", { field: "$.\0" });
    error.name = "Odd\0";
    const { message, name, field } = toStoredError(error);
    for (const text of [message, name, field, toStoredError("\0\udfff").message]) {
      expect(text).not.toMatch(/\0|\p{Cs}/u);
    }
    expect(message).toMatch(/^nul . lone .$/u);
  });

  test("is bounded, however long the text is", () => {
    const error = new Error("x".repeat(1_000_000));
    error.name = "N".repeat(1000);
    const { message, name, stack } = toStoredError(error);
    expect(message).toHaveLength(8192);
    expect(name).toHaveLength(200);
    expect(stack).toHaveLength(8192);
  });
});
