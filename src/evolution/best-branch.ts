import { OracleError } from "../core/errors.js";
import { EvolutionWorkerError } from "./error.js";
import type { Git } from "./git.js";

/** A branch that follows the best commit; it is never moved from a commit that would be lost. */
export class BestBranch {
  constructor(
    readonly name: string,
    private readonly git: Git,
    /** Whether an evolution job made the commit, by what is on record: branches of jobs can be deleted. */
    private readonly isMade: (commit: string) => Promise<boolean>,
  ) {}

  /** Refuses, before any work is done, a branch that could not be moved to what will come of the base. */
  async check(base: string): Promise<void> {
    const { name, git } = this;
    // What it prints differs where the name is short for another branch, such as @{-1}.
    const named = await git.try(["check-ref-format", "--branch", name]);
    if (named.stdout.toString().trim() !== name) throw this.misnamed();
    // Names of branches are paths: none can lie below another, and each job makes one.
    const heads = (await git.read(["for-each-ref", "--format=%(refname:strip=2)", "refs/heads"])).split("\n");
    const rival = [...heads, "evolution/job/ID"].find(
      (head) =>
        head !== "" && (head.startsWith(`${name}/`) || (`${name}/`.startsWith(`${head}/`) && head !== name)),
    );
    if (rival !== undefined) throw this.refused(`cannot be beside the branch ${rival}`);
    const current = await this.tip();
    if (current !== undefined) await this.checkMovable(current, base);
  }

  /** Lets it point at the commit; whoever moves it in between is not overwritten unseen. */
  async move(commit: string): Promise<void> {
    for (let number = 1; ; number++) {
      const current = await this.tip();
      if (current === commit) return;
      if (current !== undefined) await this.checkMovable(current, commit);
      const from = current ?? "0".repeat(commit.length);
      const args = ["update-ref", "-m", "oracle-worker evolve", `refs/heads/${this.name}`, commit, from];
      const end = await this.git.try(args);
      if (end.succeeded) return;
      if (number === MOST_TRIES) throw this.git.failed(args, end);
    }
  }

  private async tip(): Promise<string | undefined> {
    const found = await this.git.try(["rev-parse", "--verify", "--quiet", `refs/heads/${this.name}`]);
    return found.succeeded ? found.stdout.toString().trim() : undefined;
  }

  /** Moving it must lose nothing of a person's: what jobs made is on record, and what is behind us stays so. */
  private async checkMovable(from: string, to: string): Promise<void> {
    const worktrees = await this.git.read(["worktree", "list", "--porcelain"]);
    if (worktrees.split("\n").includes(`branch refs/heads/${this.name}`)) {
      const why = "is checked out somewhere, and the files there would not move with it";
      throw this.refused(why, "check out another branch there and run again, or give another name");
    }
    const jobs = await this.git.read(["for-each-ref", "--points-at", from, "refs/heads/evolution/job"]);
    const ahead = await this.git.read(["rev-list", "--max-count=1", `${to}..${from}`]);
    if (jobs !== "" || ahead === "" || (await this.isMade(from))) return;
    throw this.refused(`is at ${from.slice(0, 12)}, which no evolution job made and which would be lost`);
  }

  private misnamed(): OracleError {
    const message = `branch is ${JSON.stringify(this.name)}; it must be a name that git allows for a branch.`;
    return new OracleError("INVALID_ARGUMENT", message, { field: "branch" });
  }

  private refused(why: string, remedy = "give another name"): EvolutionWorkerError {
    const message = `branch ${JSON.stringify(this.name)} ${why}; ${remedy}.`;
    return new EvolutionWorkerError("EVOLUTION_BRANCH", message, { field: "branch" });
  }
}

/** Another run of the same experiment may be moving it just now. */
const MOST_TRIES = 5;
