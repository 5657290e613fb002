import { JobPreconditionError, OracleError } from "../core/errors.js";
import { EVOLVE_COMMIT, type EvolutionRecord, type JobArtifactKind } from "../core/evolution.js";
import { contentHash } from "../core/hash.js";
import type { LockedJob } from "../core/job.js";
import { toStoredError } from "../core/retry.js";
import type { Oracle } from "../oracle.js";
import { startJob } from "../store/acquire.js";
import { persistRecord } from "../store/evolution-record.js";
import { markFailed } from "../store/mark-failed.js";
import { getJob } from "../store/read.js";
import { settle } from "../store/settle.js";
import type { Settlement } from "../store/settle-succeeded.js";
import { uniqueWorkerId } from "../worker/id.js";
import { ArtifactKeeper } from "../worker/keep-artifact.js";
import { subjectOf } from "./card.js";
import { readChurn } from "./changes.js";
import { EvolutionWorkerError } from "./error.js";
import { makeRecord, makeResult } from "./record.js";
import { openRepository, requireBase } from "./repository.js";
import type { Coding, Evaluation, Plan } from "./roles.js";
import type { Kept } from "./run-role.js";
import { type EvolutionSpec, evolutionSpec } from "./spec.js";

/** The frozen snapshot of a job started by its id, with its spec as `input`. */
export type LockedEvolutionJob = LockedJob & { readonly input: EvolutionSpec };

/** For programs that do an evolution job themselves, without a worker: they must renew and settle what they start. */
export class EvolutionJobStore {
  /** What this store has started and not ended: the attempts it may speak for. */
  private readonly started = new Map<string, LockedEvolutionJob>();
  private readonly workerId: string;

  constructor(
    private readonly oracle: Oracle,
    private readonly options: { log?: (message: string) => void } = {},
  ) {
    this.workerId = uniqueWorkerId(oracle.settings.WORKER_ID);
  }

  /** Starts a job without waiting: JobLockConflict and JobPreconditionError say why not. */
  async startJob(jobId: string): Promise<LockedEvolutionJob> {
    const { db, settings } = this.oracle;
    return this.coded("start", jobId, async () => {
      const spec = await this.checkSpec(jobId);
      const request = { jobId, workerId: this.workerId, leaseSeconds: settings.LEASE_SECONDS };
      const locked = await startJob(db, request);
      const job = Object.freeze({ ...locked, input: spec }) as LockedEvolutionJob;
      this.started.set(jobId, job);
      return job;
    });
  }

  /** Ends a started job with success: result, card, metrics and references in one transaction. */
  async persistSuccess(
    job: LockedEvolutionJob,
    plan: Plan,
    coding: Coding,
    evaluation: Evaluation,
    commitHash: string,
    message: string,
  ): Promise<void> {
    const { db } = this.oracle;
    const { jobId, input: spec } = job;
    await this.coded("store the success of", jobId, async () => {
      const { git } = await this.open(spec);
      const churn = await readChurn(git, spec.base_commit_hash, commitHash);
      const subject = subjectOf(message);
      const kept = await this.keepAnswers(job, { plan, raw_output: coding, evaluation_log: evaluation });
      const record = makeRecord({ plan, coding, evaluation, commit: commitHash, subject, churn, kept });
      const settlement = toSettlement(job, record);
      const won = await settle(db, [settlement]);
      this.started.delete(jobId);
      const { outcome } = settlement;
      if (outcome.kind !== "succeeded") throw new Error("error" in outcome ? outcome.error?.message : "");
      if (!won.has(job.attemptId)) throw new Error("the attempt has lost the job");
    });
  }

  /**
   * Records why a job has failed, if it has not ended: one that waits, or that this store has started. Another's
   * attempt is not touched. Never throws, so that it cannot hide the failure it is called for; false: nothing changed.
   */
  async markJobFailed(jobId: string, message: string): Promise<boolean> {
    const { db } = this.oracle;
    const error = toStoredError(new EvolutionWorkerError("EVOLUTION_STORE", message, { retryable: false }));
    try {
      const held = this.started.get(jobId);
      if (!held) return await markFailed(db, jobId, error);
      const won = await settle(db, [{ lease: held, outcome: { kind: "terminal", error } }]);
      this.started.delete(jobId);
      return won.has(held.attemptId);
    } catch (failure) {
      this.options.log?.(`cannot record the failure of job ${jobId}: ${(failure as Error).message}`);
      return false;
    }
  }

  private async keepAnswers(
    job: LockedEvolutionJob,
    answers: Partial<Record<JobArtifactKind, object>>,
  ): Promise<Kept[]> {
    const keeper = new ArtifactKeeper(this.oracle.db, await this.oracle.artifactStore());
    const kept = Object.entries(answers).map(async ([kind, answer]) => {
      const text = JSON.stringify(answer, null, 2);
      const { artifact_id } = await keeper.keep(job, `${kind}.json`, text);
      return { kind: kind as JobArtifactKind, artifact_id };
    });
    return Promise.all(kept);
  }

  private async checkSpec(jobId: string): Promise<EvolutionSpec> {
    const job = await getJob(this.oracle.db, jobId);
    if (!job) throw new JobPreconditionError(jobId, "does not exist");
    if (job.type !== EVOLVE_COMMIT) throw new JobPreconditionError(jobId, `is of type ${job.type}`);
    const spec = evolutionSpec.safeParse(job.input);
    if (!spec.success) {
      const [issue] = spec.error.issues;
      throw new JobPreconditionError(jobId, `has no fit input: ${issue?.path.join(".")}: ${issue?.message}`);
    }
    await requireBase(await this.open(spec.data), spec.data, jobId);
    return spec.data;
  }

  private open(spec: EvolutionSpec): ReturnType<typeof openRepository> {
    const signal = new AbortController().signal;
    return openRepository(spec, { signal, groups: undefined, allowed: undefined });
  }

  private async coded<T>(what: string, jobId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof OracleError) throw error;
      const message = `Cannot ${what} job ${jobId}: ${(error as Error).message}.`;
      throw new EvolutionWorkerError("EVOLUTION_STORE", message, { jobId, cause: error });
    }
  }
}

function toSettlement(job: LockedEvolutionJob, record: EvolutionRecord): Settlement {
  const result = makeResult(job.jobId, job.input, record);
  const statements = [{ name: "card", seq: 1, own: true as const, ...persistRecord(job, record) }];
  return {
    lease: job,
    outcome: {
      kind: "succeeded",
      resultText: JSON.stringify(result),
      contentHash: contentHash(result),
      recorded: true,
      commits: { statements, delaySeconds: 0 },
    },
  };
}
