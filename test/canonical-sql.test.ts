import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { canonicalJson, contentHash, specHash } from "../src/core/hash.js";
import { defaultJsonLimits, type JsonValue, parseJsonText } from "../src/core/json.js";
import { numberFault } from "../src/core/json-number.js";

const schema = `canonical_${randomBytes(4).toString("hex")}`;
const client = new pg.Client(inject("adminUrl"));

beforeAll(async () => {
  await client.connect();
  const migration = await readFile(
    new URL("../db/migrations/003_canonical_json.sql", import.meta.url),
    "utf8",
  );
  await client.query(`CREATE SCHEMA ${schema}; ${migration.replaceAll("{schema}", schema)}`);
});

afterAll(async () => {
  await client.query(`DROP SCHEMA ${schema} CASCADE`);
  await client.end();
});

/** Characters that sort differently by UTF-8, UTF-16 and locale, and those that JSON escapes or might. */
const oddCharacters =
  'aAbBzéßİ/ ~\u0001\u001f\b\t\n\f\r"\\\u007f\u0080\u2028\ud7ff\ue000\ufb33\uffff\u{10000}😀\u{10ffff}';

const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(...oddCharacters), maxLength: 6 }),
  fc.string({ unit: "binary", maxLength: 12 }).map((raw) => raw.replaceAll("\0", "")),
);

/**
 * Doubles next to the middle between two of them where that middle is k·5^q·2^s, a decimal of few digits:
 * there Postgres and ECMAScript disagree about the shortest digits.
 */
const besideTie = fc.integer({ min: 1, max: 23 }).chain((q) => {
  const least = Number(2n ** 53n / 5n ** BigInt(q));
  return fc
    .tuple(fc.integer({ min: least, max: Math.min(2 * least, Number.MAX_SAFE_INTEGER) }), fc.nat({ max: 55 }))
    .map(([k, more]) => Number((BigInt(k) | 1n) * 10n ** BigInt(q) * 2n ** BigInt(more)));
});

const decimalText = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.bigInt({ min: 0n, max: 10n ** 19n }),
    fc.integer({ min: -345, max: 320 }),
  )
  .map(([sign, digits, exponent]) => `${sign}${digits}e${exponent}`);

const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.double({ min: -1e-5, max: 1e-5, noNaN: true }),
  fc.integer({ min: -99999, max: 99999 }).map((n) => n / 1000),
  decimalText.map(Number).filter(Number.isFinite),
  besideTie,
);

const json = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    text,
    number,
    fc.constantFrom(null, true, false),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(text, tie("value"), { maxKeys: 6 }),
  ),
})).value;

interface Row {
  canonical: string;
  hash: string;
}

async function inSql(values: JsonValue[]): Promise<Row[]> {
  const { rows } = await client.query<Row>(
    `SELECT ${schema}.canonical_json(item::jsonb) AS canonical, ${schema}.spec_hash('übung', item::jsonb, 'v2') AS hash
     FROM unnest($1::text[]) WITH ORDINALITY AS items(item, place) ORDER BY place`,
    [values.map((value) => JSON.stringify(value))],
  );
  return rows;
}

function inTypeScript(values: JsonValue[]): Row[] {
  return values.map((input) => ({
    canonical: canonicalJson(input),
    hash: specHash({ jobType: "übung", input, handlerVersion: "v2" }),
  }));
}

describe("canonical_json and spec_hash", () => {
  test("agree with TypeScript on 4000 generated values", async () => {
    const values = fc.sample(json, 4000);
    expect(await inSql(values)).toEqual(inTypeScript(values));
  });

  test("agree with TypeScript on 8000 nasty numbers", async () => {
    const values = [...fc.sample(number, 4000), ...fc.sample(besideTie, 4000)];
    expect(await inSql(values)).toEqual(inTypeScript(values));
  });

  test("print 4000 numbers anew, however they are spelled", async () => {
    const zeros = fc.tuple(
      fc.integer(),
      fc.constantFrom(".0", ".50", ".00", ".10e1", "e2", "E-3", ".0000001"),
    );
    const spelled = fc
      .oneof(
        decimalText,
        zeros.map(([n, tail]) => `${n}${tail}`),
      )
      .filter((token) => {
        return Number.isFinite(Number(token)) && !numberFault(token)?.includes("small");
      });
    const tokens = ["-0", "-0.0", "0e9", ...fc.sample(spelled, 4000)];
    const { rows } = await client.query<{ canonical: string }>(
      `SELECT ${schema}.canonical_json(token::jsonb) AS canonical
       FROM unnest($1::text[]) WITH ORDINALITY AS tokens(token, place) ORDER BY place`,
      [tokens],
    );
    expect(rows.map(({ canonical }) => canonical)).toEqual(tokens.map((token) => String(Number(token))));
  });

  test("do not depend on the session's settings", async () => {
    const values = [
      ...fc.sample(json, 200),
      1e23,
      0.1 + 0.2,
      "\\",
      '\\\\u0000 "',
      { b: 1, a: [1.5, "x, y: z"] },
    ];
    try {
      await client.query(`
        CREATE FUNCTION ${schema}.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS 'SELECT ''string''::text';
        SET search_path = ${schema}, pg_catalog; SET extra_float_digits = -15; SET bytea_output = escape;
        SET standard_conforming_strings = off; SET escape_string_warning = off`);
      expect(await inSql(values)).toEqual(inTypeScript(values));
    } finally {
      await client.query(`RESET ALL; DROP FUNCTION ${schema}.jsonb_typeof(jsonb)`);
    }
  });

  test("manage the largest and the deepest input", async () => {
    const nested = (depth: number, inner: JsonValue): JsonValue =>
      depth === 0 ? inner : { a: [nested(depth - 2, inner)] };
    const rows = Array.from({ length: 9000 }, (_, id) => ({
      id,
      title: `Report ${id}`,
      tags: ["a", "b"],
      weight: id / 7,
    }));
    const values = [rows, nested(64, "x".repeat(1_000_000)), nested(64, rows.slice(0, 4000))];
    expect((await inSql(values)).map(({ hash }) => hash)).toEqual(
      inTypeScript(values).map(({ hash }) => hash),
    );
  });

  test("serve where no handler version is pinned", async () => {
    const { rows } = await client.query(`SELECT ${schema}.spec_hash('noop', '{}') AS hash`);
    expect(rows[0]?.hash).toBe(specHash({ jobType: "noop", input: {} }));
  });
});

/** What check_payload says of a JSON text: "" when it may pass. */
async function checked(jsonText: string, ...limits: number[]): Promise<string> {
  const places = ["$1::text::jsonb", ...limits.map((_, index) => `$${index + 2}`)];
  try {
    await client.query(`SELECT ${schema}.check_payload(${places.join(", ")})`, [jsonText, ...limits]);
    return "";
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== "22023") throw error;
    return `${error.message.split(":")[0]} ${error.detail}`;
  }
}

describe("check_payload", () => {
  test("judges 4000 numbers as parseJsonText does", async () => {
    const wholeText = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String);
    const edges = [
      "9007199254740992",
      "9007199254740993.0",
      "9007199254740993.5",
      "1e400",
      "-1e-400",
      "2.4703282292062328e-324",
      "2.4703282292062327e-324",
      "1.7976931348623158e308",
      "1.7976931348623159e308",
    ];
    const tokens = [
      ...edges,
      ...fc.sample(fc.oneof(decimalText, wholeText, besideTie.map(BigInt).map(String)), 4000),
    ];
    const { rows } = await client.query<{ fine: boolean }>(
      `SELECT ${schema}.number_fault(token::numeric) IS NULL AS fine
       FROM unnest($1::text[]) WITH ORDINALITY AS tokens(token, place) ORDER BY place`,
      [tokens],
    );
    const inSql = rows.map(({ fine }, index) => [tokens[index], fine]);
    expect(inSql).toEqual(tokens.map((token) => [token, numberFault(token) === undefined]));
  });

  test.each([
    ['{"a":[1,{"odd key":12345678901234567890}]}', 'PAYLOAD_REJECTED $.a[1]["odd key"]'],
    ['{"a":{"b":1e400}}', "PAYLOAD_REJECTED $.a.b"],
    ["[0,-1e-400]", "PAYLOAD_REJECTED $[1]"],
    ["[9007199254740992, 1e21, 1e23, 0.1000000000000000055, 5e-324, 1.7976931348623157e308]", ""],
    ['["12345678901234567890"]', ""],
    [`${"[".repeat(64)}1${"]".repeat(64)}`, ""],
    [`${"[".repeat(65)}${"]".repeat(65)}`, `PAYLOAD_TOO_DEEP $${"[0]".repeat(64)}`],
    [`${'{"a":'.repeat(2000)}1${"}".repeat(2000)}`, `PAYLOAD_TOO_DEEP $${".a".repeat(64)}`],
    [`"${"x".repeat(defaultJsonLimits.maxBytes - 2)}"`, ""],
    [`"${"é".repeat(defaultJsonLimits.maxBytes / 2)}"`, "PAYLOAD_TOO_LARGE $"],
  ])("says what parseJsonText says (%#)", async (jsonText, verdict) => {
    let ours = "";
    try {
      parseJsonText(jsonText);
    } catch (error) {
      const { code, field } = error as { code: string; field: string };
      ours = `${code} ${field}`;
    }
    expect(await checked(jsonText)).toBe(verdict);
    expect(ours).toBe(verdict);
  });

  test("counts bytes as JSON.stringify writes them, not as jsonb prints them", async () => {
    const value = { numbers: [1, 1e300, 1.5, 1e-7], "a key": ["é", true] };
    const size = Buffer.byteLength(JSON.stringify(value));
    expect(await checked(JSON.stringify(value, null, 4), size)).toBe("");
    expect(await checked(JSON.stringify(value), size - 1)).toBe("PAYLOAD_TOO_LARGE $");
  });

  test("takes other limits", async () => {
    expect(await checked("[[1]]", 100, 2)).toBe("");
    expect(await checked("[[1]]", 100, 1)).toBe("PAYLOAD_TOO_DEEP $[0]");
  });

  test("lets a canonical text keep its hash on the way back", async () => {
    const { rows } = await client.query(`SELECT '{"b": 1.0, "a": 1e2}'::jsonb AS value`);
    expect(contentHash(rows[0]?.value)).toBe(contentHash({ a: 100, b: 1 }));
  });
});
