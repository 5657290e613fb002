import { describe, expect, test } from "vitest";
import { evolutionSpec } from "./spec.js";

const hash = "0123456789abcdef0123456789abcdef01234567";
const least = { repository_id: "r", repository: "/r", base_commit_hash: hash, goal: "better" };

describe("a spec", () => {
  test("needs four fields and has defaults for the lists", () => {
    expect(evolutionSpec.parse(least)).toEqual({
      ...least,
      inspiration_commit_hashes: [],
      constraints: [],
      acceptance_criteria: [],
      notes: [],
      tags: [],
    });
  });

  test("may be filled to its bounds", () => {
    const texts = (count: number, length: number) => Array<string>(count).fill("x".repeat(length));
    const most = {
      repository_id: "x".repeat(200),
      repository: "/".repeat(4096),
      base_commit_hash: hash + hash.slice(0, 24),
      island_id: "x".repeat(200),
      experiment_id: "x".repeat(200),
      inspiration_commit_hashes: Array<string>(10).fill(hash),
      goal: "x".repeat(512),
      constraints: texts(20, 200),
      acceptance_criteria: texts(20, 200),
      notes: texts(20, 200),
      tags: texts(20, 64),
      iteration_hint: "x".repeat(200),
    };
    expect(evolutionSpec.parse(most)).toEqual(most);
  });

  test.each([
    ["repository_id", ""],
    ["repository_id", "x".repeat(201)],
    ["repository", ""],
    ["base_commit_hash", undefined],
    ["base_commit_hash", "main"],
    ["base_commit_hash", hash.toUpperCase()],
    ["base_commit_hash", hash.slice(1)],
    ["base_commit_hash", `${hash}\n`],
    ["inspiration_commit_hashes", Array(11).fill(hash)],
    ["inspiration_commit_hashes", ["--upload-pack=x"]],
    ["goal", ""],
    ["goal", "x".repeat(513)],
    ["constraints", Array(21).fill("x")],
    ["acceptance_criteria", ["x".repeat(201)]],
    ["notes", Array(21).fill("x")],
    ["notes", [""]],
    ["tags", ["x".repeat(65)]],
    ["iteration_hint", "x".repeat(201)],
    ["something_else", 1],
  ])("with %s %j is refused", (field, value) => {
    const { success, error } = evolutionSpec.safeParse({ ...least, [field]: value });
    expect(success).toBe(false);
    expect(JSON.stringify(error?.issues)).toContain(field);
  });
});
