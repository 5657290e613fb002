import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MarkedLog } from "./marked-log.js";

const anyWords = fc.array(
  fc.string({ unit: fc.constantFrom("a", "é", "\n", "\x1e", "\x1enot a mark\n"), maxLength: 8 }),
  { minLength: 1, maxLength: 6 },
);
const anySizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 });

describe("stderr with marks", () => {
  test("is each attempt's own, however it arrives", () => {
    fc.assert(
      fc.property(
        anyWords,
        anySizes,
        fc.string({ unit: fc.constantFrom("x", "\x1e") }),
        (words, sizes, last) => {
          const ids: string[] = words.map(() => randomUUID());
          const bytes = Buffer.from(`${words.map((text, n) => `${text}\x1e${ids[n]}\n`).join("")}${last}`);
          const heard: [string, string][] = [];
          const log = new MarkedLog<string>(
            (id) => (ids.includes(id) ? id : undefined),
            (id, said) => heard.push([id, said?.text ?? ""]),
          );
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const end = at + (sizes[turn % sizes.length] ?? 1);
            log.push(bytes.subarray(at, end));
            at = end;
          }
          expect(heard).toEqual(words.map((text, n) => [ids[n], text]));
          expect(log.take()?.text ?? "").toBe(last);
        },
      ),
    );
  });
});
