import { isAbsolute, posix } from "node:path";
import { OracleError } from "../core/errors.js";
import { findProgram } from "../handlers/process/command.js";
import type { EvolveOptions } from "./evolve-options.js";
import type { Git } from "./git.js";
import type { Coder } from "./roles.js";

type Roles = Pick<EvolveOptions, "coder" | "evaluator" | "planner">;

/** Refuses a role whose program is not there, before a generation is spoilt by it. */
export async function checkPrograms(git: Git, base: string, roles: Roles): Promise<void> {
  for (const [field, program] of Object.entries(programsOf(roles))) {
    if (program === undefined || (await isThere(git, base, program))) continue;
    const message = `${field} starts ${JSON.stringify(program.slice(0, 200))}, which is not there or not executable; ${rightFor(program)}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field });
  }
}

function programsOf({ coder, evaluator, planner }: Roles): Record<string, string | undefined> {
  return {
    coder: coderProgram(coder),
    evaluator: "command" in evaluator ? evaluator.command[0] : undefined,
    planner: planner && "executable" in planner ? planner.executable[0] : undefined,
  };
}

function coderProgram(coder: Coder): string | undefined {
  if (typeof coder === "function") return undefined;
  return ("agent" in coder ? coder.agent : coder.executable)[0];
}

/** As it will be looked for: a name in PATH, a path from the worktree, which has what the base commit has. */
async function isThere(git: Git, base: string, program: string): Promise<boolean> {
  if (!isInside(program)) return findProgram(program, "/") !== undefined;
  const path = posix.normalize(program);
  const entry = await git.try(["ls-tree", base, "--", path]);
  // A symbolic link may lead anywhere: what it leads to shows when it is started.
  return /^(100755|120000) /.test(entry.stdout.toString());
}

function isInside(program: string): boolean {
  return program.includes("/") && !isAbsolute(program);
}

function rightFor(program: string): string {
  if (isInside(program))
    return "a path is one in the checkout of the base commit: name a file outside of it in full";
  return isAbsolute(program) ? "it must be an executable file" : "it must be in PATH, or named in full";
}
