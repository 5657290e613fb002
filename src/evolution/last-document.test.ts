import { expect, test } from "vitest";
import { lastDocument } from "./last-document.js";

test.each([
  ['{"a": 1}', { value: { a: 1 } }],
  ['compiling\n{not json}\n{\n"a": {\n"b": 1}}\n', { value: { a: { b: 1 } } }],
  ['{"a": 1}\ndone', undefined],
  ["NaN", undefined],
  ['{"a": NaN}', { wrong: "the document holds NaN or Infinity; JSON has no such number" }],
  ['{"a": 1e400}', { wrong: expect.stringMatching(/^the document .* 1e400 .*JSON has no such number$/) }],
  ['{"number": 1, "number": 2}', { wrong: expect.stringMatching(/^the document .* twice; send it once$/) }],
  ['{"a": 12345678901234567890}', { wrong: expect.stringMatching(/would change .* send it as a string$/) }],
])("of %j the last document is %j", (text, found) => {
  expect(lastDocument(text)).toEqual(found);
});
