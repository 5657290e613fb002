import { expect, it } from "vitest";
import { parseWords } from "./words.js";

const split = parseWords("--coder");

it.each([
  ["node coder.mjs", ["node", "coder.mjs"]],
  ["  node\t a  b ", ["node", "a", "b"]],
  [`node 'a b' "c d" e\\ f`, ["node", "a b", "c d", "e f"]],
  [`sh -c 'echo "$HOME" \\n'`, ["sh", "-c", 'echo "$HOME" \\n']],
  [`"a \\" b" x''y ''`, ['a " b', "xy", ""]],
  ["a;b && c | d > $(e) \\", ["a;b", "&&", "c", "|", "d", ">", "$(e)", "\\"]],
])("%s", (given, words) => {
  expect(split(given)).toEqual(words);
});

it.each([
  ["", "a program with its arguments"],
  ["   ", "a program with its arguments"],
  ["'' x", "a program with its arguments"],
  ["node 'a", "one ' is open"],
  ['node "a \\"', 'one " is open'],
])("refuses %j", (given, why) => {
  expect(() => split(given)).toThrow(why);
  try {
    split(given);
  } catch (error) {
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT", field: "--coder" });
  }
});
