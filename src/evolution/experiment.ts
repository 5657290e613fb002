import { hash } from "node:crypto";
import { basename } from "node:path";
import { OracleError } from "../core/errors.js";
import type { Database } from "../store/database.js";
import { findCards } from "../store/evolution-cards.js";
import { BestBranch } from "./best-branch.js";
import type { EvolveOptions } from "./evolve-options.js";
import type { Git } from "./git.js";
import { checkPrograms } from "./programs.js";
import { openRepository, type Repository } from "./repository.js";
import { commitHash } from "./spec.js";

/** Jobs of the command belong to the tenant that every job belongs to unless one is named. */
export const TENANT = "default";

/** What names an experiment and its jobs: the same names again are the same jobs again. */
export interface Experiment {
  name: string;
  repository: Repository;
  repositoryId: string;
  /** The commit it starts from. */
  base: string;
  branch: BestBranch;
  /** Of its own, so that its jobs are served by those who know its coder. */
  queue: string;
  startKey: string;
  jobKey(generation: number, slot: number): string;
  /** Of a job's key; undefined where it is none of this experiment's. */
  placeOf(key: string): { generation: number; slot: number } | undefined;
}

/** Finds repository and start; refuses what cannot work before anything is paid for. */
export async function openExperiment(db: Database, options: EvolveOptions): Promise<Experiment> {
  const repository = await open(options.repo);
  const { git } = repository;
  const base = await findCommit(git, options.base);
  await checkPrograms(git, base, options);
  const repositoryId = `${basename(git.folder).slice(0, 100)}-${short(git.folder)}`;
  const isMade = async (commit: string) =>
    (await findCards(db, { tenantId: TENANT, repositoryId }, [commit])).length > 0;
  const branch = new BestBranch(options.branch, git, isMade);
  await branch.check(base);
  const name = options.experiment ?? `evolution-${short(JSON.stringify(identity(options, base)))}`;
  const prefix = `evolve/${repositoryId}/${name}`;
  return {
    name,
    repository,
    repositoryId,
    base,
    branch,
    queue: `evolve-${short(prefix)}`,
    startKey: `${prefix}/start`,
    jobKey: (generation, slot) => `${prefix}/${generation}/${slot}`,
    placeOf: (key) => {
      const [generation, slot] = key.startsWith(`${prefix}/`) ? key.slice(prefix.length + 1).split("/") : [];
      return slot === undefined ? undefined : { generation: Number(generation), slot: Number(slot) };
    },
  };
}

/** Values are comparable, and jobs can be gone on with, as long as these are the same. */
function identity({ goal, metric, evaluator }: EvolveOptions, base: string): unknown[] {
  return [base, goal, metric ?? null, evaluator];
}

function short(text: string): string {
  return hash("sha256", text).slice(0, 8);
}

async function open(given: string): Promise<Repository> {
  // Not ended by the jobs' signals: it reads and moves names, which takes no time.
  const options = { signal: new AbortController().signal, groups: undefined, allowed: undefined };
  try {
    return await openRepository({ repository: given }, options);
  } catch (error) {
    const right = `the folder of a git repository. ${(error as Error).message}`.replace(/\.$/, "");
    throw wrong("repo", given, right);
  }
}

async function findCommit(git: Git, given: string): Promise<string> {
  const found = await git.try(["rev-parse", "--verify", "--quiet", "--end-of-options", `${given}^{commit}`]);
  const hash = found.stdout.toString().trim();
  if (found.succeeded && commitHash.safeParse(hash).success) return hash;
  throw wrong("base", given, "a branch, tag or hash of a commit that the repository has");
}

function wrong(field: string, given: string, right: string): OracleError {
  const message = `${field} is ${JSON.stringify(given.slice(0, 200))}; it must be ${right}.`;
  return new OracleError("INVALID_ARGUMENT", message, { field });
}
