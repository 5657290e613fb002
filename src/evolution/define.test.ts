import { describe, expect, test } from "vitest";
import { defineEvolution } from "./define.js";
import type { EvolutionOptions } from "./options.js";

const least: EvolutionOptions = {
  coder: { agent: ["an-agent"] },
  evaluator: { command: ["node", "measure.mjs", "--fast"] },
};

describe("an evolution", () => {
  test.each<[string, Partial<EvolutionOptions>]>([
    ["programs", { planner: { executable: ["plan"] }, coder: { executable: ["code", "--yes"] } }],
    ["an argument that is empty", { coder: { agent: ["code", "--hint", ""] } }],
    [
      "functions",
      {
        planner: () => ({ summary: "plan" }),
        coder: async () => ({ summary: "code" }),
        evaluator: () => ({ summary: "", metrics: [] }),
      },
    ],
    [
      "every option",
      {
        workspace: "work",
        repositories: ["/srv/repositories", "more"],
        push: "origin",
        author: { name: "Björn 2", email: "b@localhost" },
        env: ["KEY"],
        timeoutSeconds: 60,
        backoff: { kind: "fixed" },
        version: "1",
      },
    ],
  ])("is defined with %s", (_what, options) => {
    expect(defineEvolution({ ...least, ...options }).type).toBe("evolve_commit");
  });

  test.each<[string, unknown, string]>([
    ["repositores", ["/srv"], 'no option "repositores". Known: planner, coder'],
    ["planner", { agent: ["plan"] }, "a function or { executable }"],
    ["planner", null, "a function or { executable }"],
    ["coder", undefined, "{ executable } or { agent }"],
    ["coder", { command: ["code"] }, "{ executable } or { agent }"],
    ["coder", { agent: [] }, "program, then arguments"],
    ["coder", { agent: [""] }, "program, then arguments"],
    ["coder", { executable: ["code", ""] }, "program, then arguments"],
    ["coder", { agent: ["code"], executable: ["code"] }, "{ executable } or { agent }"],
    ["coder", "code", "a function"],
    ["evaluator", undefined, "a function or { command }"],
    ["evaluator", { command: "node x" }, "is { command: 'node x' }; it must be a function or { command }"],
    ["evaluator", { command: ["node", 1] }, "program, then arguments"],
    ["evaluator", { executable: ["node"] }, "a function or { command }"],
    ["workspace", 1, "the path of a folder"],
    ["workspace", "", "the path of a folder"],
    ["repositories", "/tmp/u", "a list of paths"],
    ["repositories", [""], "a list of paths"],
    ["push", ["origin"], "the name or address of a remote"],
    ["author", "Ada", "{ name, email }"],
    ["author", { name: "Ada" }, "{ name, email }"],
    ["author", { name: "Ada <", email: "ada@localhost" }, "without < and >"],
    ["author", { name: " ", email: "ada@localhost" }, "{ name, email }"],
    ["env", "KEY", "a list of names"],
    ["timeoutSeconds", "60", "a whole number of seconds"],
    ["backoff", "fixed", "baseSeconds"],
    ["version", 1, "a text"],
  ])("with %s %j is refused", (field, value, message) => {
    const options = { ...least, [field]: value } as EvolutionOptions;
    expect(() => defineEvolution(options)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", field, message: expect.stringContaining(message) }),
    );
  });

  test.each([undefined, null, "evolve"])("of %j is refused", (options) => {
    expect(() => defineEvolution(options as unknown as EvolutionOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", field: "options" }),
    );
  });
});
