import type { JobContext } from "../handlers/define.js";
import { findCards } from "../store/evolution-cards.js";
import { persistRecord } from "../store/evolution-record.js";
import { type Inside, insideOf } from "../worker/context.js";
import { commitMessage, subjectOf } from "./card.js";
import { readChurn, restoreChanges } from "./changes.js";
import { branchOf, commitTree, pushBranch } from "./commit.js";
import type { Git } from "./git.js";
import type { EvolutionOptions, EvolutionResult } from "./options.js";
import { makeRecord, makeResult } from "./record.js";
import { isUsable, openRepository, type Repository, requireBase, vanished } from "./repository.js";
import { RoleRunner } from "./run-role.js";
import type { EvolutionSpec } from "./spec.js";
import { code, evaluate, plan, type StageParts } from "./stages.js";
import { sweep } from "./sweep.js";
import { addWorktree, WORKSPACE } from "./worktree.js";

const defaultAuthor = { name: "oracle-worker", email: "oracle-worker@localhost" };

/** One attempt of an evolve_commit job, from its worktree to what commits with its result. */
export async function evolveCommit(
  context: JobContext<EvolutionSpec>,
  options: EvolutionOptions,
): Promise<EvolutionResult> {
  const { input: spec, job, signal } = context;
  const inside = insideOf(context);
  const { db, groups } = inside;
  const workspace = options.workspace ?? WORKSPACE;
  const repository = await openRepository(spec, { signal, groups, allowed: options.repositories });
  await requireBase(repository, spec, job.id);
  await sweep(db, repository, workspace);
  context.progress(0.05, "worktree");
  const owner = { jobId: job.id, attemptId: job.attemptId };
  const worktree = await addWorktree(repository, workspace, owner, spec.base_commit_hash);
  try {
    return await work(context, options, inside, repository, worktree.git);
  } catch (error) {
    signal.throwIfAborted();
    // Whatever failed first: without its repository nothing could have gone well.
    throw (await isUsable(repository)) ? error : vanished(repository, error);
  } finally {
    // Before the result is stored, so that a job that has succeeded leaves none. One that cannot be removed is swept.
    await worktree.remove().catch((error: Error) => context.log.warn(`${worktree.folder}: ${error.message}`));
  }
}

/** From the plan to the commit. Each part is remembered: a later attempt goes on where this one ended. */
async function work(
  context: JobContext<EvolutionSpec>,
  options: EvolutionOptions,
  { db, groups, commit }: Inside,
  repository: Repository,
  git: Git,
): Promise<EvolutionResult> {
  const { input: spec, job } = context;
  const base = spec.base_commit_hash;
  const about = { tenantId: job.tenantId, repositoryId: spec.repository_id };
  const parts: StageParts = {
    spec,
    runner: new RoleRunner(context, git.folder, groups, options.env ?? []),
    git,
    inspirations: await findCards(db, about, spec.inspiration_commit_hashes),
  };
  context.progress(0.1, "plan");
  const planned = await context.step("plan", () => plan(options.planner, parts));
  context.progress(0.2, "code");
  const coded = await context.step("code", () => code(options.coder, planned.plan, parts));
  context.progress(0.6, "evaluate");
  await restoreChanges(git, base, coded.changes);
  const { evaluation, kept } = await context.step("evaluate", () =>
    evaluate(options.evaluator, planned.plan, parts),
  );
  context.progress(0.9, "commit");
  const branch = branchOf(job.id);
  const subject = subjectOf(coded.coding.message ?? planned.plan.summary);
  const hash = await commitTree(context, repository.git, {
    branch,
    parent: base,
    tree: coded.changes.tree,
    message: commitMessage(subject, coded.coding.summary, job.id),
    author: options.author ?? defaultAuthor,
    at: coded.at,
  });
  if (options.push !== undefined) {
    await pushBranch(context, repository.git, { remote: options.push, branch, commit: hash });
  }
  const record = makeRecord({
    plan: planned.plan,
    coding: coded.coding,
    evaluation,
    commit: hash,
    subject,
    churn: await readChurn(repository.git, base, hash),
    kept: [...planned.kept, ...coded.kept, ...kept],
  });
  commit("card", persistRecord({ jobId: job.id, attemptId: job.attemptId }, record));
  return makeResult(job.id, spec, record);
}
