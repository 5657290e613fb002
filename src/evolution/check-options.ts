import { inspect } from "node:util";
import { OracleError } from "../core/errors.js";
import { checkOptionNames, type OptionNames } from "../core/options.js";
import type { EvolutionOptions } from "./options.js";

const optionNames: OptionNames<EvolutionOptions> = {
  planner: true,
  coder: true,
  evaluator: true,
  workspace: true,
  repositories: true,
  push: true,
  author: true,
  env: true,
  timeoutSeconds: true,
  backoff: true,
  version: true,
};

type Rule = (value: unknown) => boolean;

const isText: Rule = (value) => typeof value === "string" && value !== "" && !value.includes("\0");
const isTexts: Rule = (value) => Array.isArray(value) && value.every(isText);
/** An argument may be empty, except where `defineJob` refuses that. */
const isCommand = (value: unknown, way: string): boolean =>
  Array.isArray(value) &&
  isText(value[0]) &&
  value.every((part) => isText(part) || (part === "" && way !== "executable"));
const optional =
  (rule: Rule): Rule =>
  (value) =>
    value === undefined || rule(value);

/** A function, or an object that names its program in one of these ways and says nothing else. */
function isRole(...ways: string[]): Rule {
  return (value) => {
    if (typeof value === "function") return true;
    if (typeof value !== "object" || value === null) return false;
    const [[way, command] = ["", undefined], ...more] = Object.entries(value);
    return ways.includes(way) && isCommand(command, way) && more.length === 0;
  };
}

/** What git takes as a name: it would cut out the characters that end one, and refuses one without letters. */
const isName: Rule = (value) =>
  isText(value) && /[\p{L}\p{N}]/u.test(value as string) && !/[<>\n]/.test(value as string);

function isAuthor(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { name, email, ...more } = value as Record<string, unknown>;
  return isName(name) && isName(email) && Object.keys(more).length === 0;
}

const program = "is a list of texts: program, then arguments";
/** Those of `defineJob` are looked at there. */
const rules: [keyof EvolutionOptions, Rule, string][] = [
  ["planner", optional(isRole("executable")), `a function or { executable }, which ${program}`],
  [
    "coder",
    isRole("executable", "agent"),
    `a function, { executable } or { agent }, of which the value ${program}`,
  ],
  ["evaluator", isRole("command"), `a function or { command }, which ${program}`],
  ["workspace", optional(isText), "the path of a folder"],
  ["repositories", optional(isTexts), "a list of paths of folders"],
  ["push", optional(isText), "the name or address of a remote"],
  ["author", optional(isAuthor), "{ name, email }, both texts of one line without < and >"],
  ["env", optional(isTexts), "a list of names of environment variables"],
];

/** Refuses what would be ignored or fail only when a job runs: a fence that is misspelt is no fence. */
export function checkOptions(options: EvolutionOptions): void {
  checkOptionNames("defineEvolution", options, optionNames);
  for (const [field, isRight, right] of rules) {
    const value: unknown = options[field];
    if (isRight(value)) continue;
    const shown = inspect(value, { depth: 2, breakLength: Number.POSITIVE_INFINITY });
    const message = `defineEvolution: ${field} is ${shown}; it must be ${right}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field });
  }
}
