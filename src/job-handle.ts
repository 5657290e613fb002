import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "./core/errors.js";
import type { Job, Result } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import type { JobState } from "./core/states.js";
import type { JobDefinition } from "./handlers/define.js";
import type { Enqueued } from "./store/new-job.js";

/** What submitting a job takes, and what it gives in the end; a job known by its name only takes and gives anything. */
export type Input<D> =
  D extends JobDefinition<infer In, StandardSchemaV1> ? StandardSchemaV1.InferInput<In> : unknown;
export type Output<D> =
  D extends JobDefinition<StandardSchemaV1, infer Out> ? StandardSchemaV1.InferOutput<Out> : JsonValue;

/** What a handle asks of the installation it came from. */
interface Installation {
  wait(jobId: string, options: { timeoutSeconds?: number }): Promise<Job | undefined>;
  result(jobId: string): Promise<Result | undefined>;
  get(jobId: string): Promise<Job | undefined>;
  cancel(jobId: string): Promise<Job>;
}

/** One submitted job. */
export class JobHandle<T = JsonValue> {
  readonly id: string;
  /** False: the job was there already. */
  readonly created: boolean;
  /** How an existing job was found. */
  readonly joined: Enqueued["joined"];

  constructor(
    private readonly oracle: Installation,
    enqueued: Enqueued,
  ) {
    this.id = enqueued.jobId;
    this.created = enqueued.created;
    this.joined = enqueued.joined;
  }

  /** The result, once there is one; throws when the job fails, is cancelled, or takes longer than given. */
  async result(options: { timeoutSeconds?: number } = {}): Promise<T> {
    const { timeoutSeconds = 3600 } = options;
    const job = await this.oracle.wait(this.id, { timeoutSeconds });
    if (!job) {
      throw new OracleError("WAIT_TIMEOUT", `Job ${this.id} did not finish within ${timeoutSeconds} s.`, {
        jobId: this.id,
      });
    }
    if (job.state === "CANCELLED") {
      throw new OracleError("JOB_CANCELLED", `Job ${this.id} was cancelled.`, { jobId: this.id });
    }
    if (job.state === "FAILED_TERMINAL") {
      const why = job.error ? `${job.error.code}: ${job.error.message}` : "no reason recorded";
      throw new OracleError("JOB_FAILED", `Job ${this.id} failed: ${why}`, { jobId: this.id });
    }
    return (await this.oracle.result(this.id))?.payload as T;
  }

  async state(): Promise<JobState> {
    const job = await this.oracle.get(this.id);
    if (job) return job.state;
    throw new OracleError("JOB_NOT_FOUND", `There is no job ${this.id}.`, { jobId: this.id });
  }

  cancel(): Promise<Job> {
    return this.oracle.cancel(this.id);
  }
}
