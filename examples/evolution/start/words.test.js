import assert from "node:assert/strict";
import { test } from "node:test";
import { wordCounts } from "./words.js";

const pairs = (text) => wordCounts(text).map(({ word, count }) => [word, count]);

test("counts words whatever their case", () => {
  assert.deepEqual(pairs("The cat saw the CAT, the end."), [
    ["the", 3],
    ["cat", 2],
    ["end", 1],
    ["saw", 1],
  ]);
});

test("has equals in the order of the alphabet", () => {
  assert.deepEqual(pairs("pear fig apple fig pear"), [
    ["fig", 2],
    ["pear", 2],
    ["apple", 1],
  ]);
});

test("knows words that objects know too", () => {
  assert.deepEqual(pairs("constructor valueof constructor"), [
    ["constructor", 2],
    ["valueof", 1],
  ]);
});

test("finds nothing in nothing", () => {
  assert.deepEqual(pairs(" … 42"), []);
});
