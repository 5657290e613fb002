import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OracleError } from "./core/errors.js";
import type { Attempt, Job, Result } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import type { Settings } from "./core/settings.js";
import type { JobState } from "./core/states.js";
import type { JobDefinition } from "./handlers/define.js";
import { validate } from "./handlers/validate.js";
import { type Acquired, acquire, startJob } from "./store/acquire.js";
import { checkSchema } from "./store/check-schema.js";
import { cancel, retry, retryAll } from "./store/control.js";
import { Database, type SqlClient } from "./store/database.js";
import { type Enqueued, enqueue, type NewJob } from "./store/enqueue.js";
import { migrate } from "./store/migrate.js";
import { pauseQueue, type Queue, queues, setQueueAgeing } from "./store/queues.js";
import {
  checkJobId,
  getAttempts,
  getJob,
  getResult,
  type JobFilter,
  list,
  requireJob,
} from "./store/read.js";
import { Waiter } from "./store/wait.js";
import { type EnqueueOptions, toNewJob } from "./submit.js";

type Output<D> =
  D extends JobDefinition<StandardSchemaV1, infer Out> ? StandardSchemaV1.InferOutput<Out> : JsonValue;
type Input<D> =
  D extends JobDefinition<infer In, StandardSchemaV1> ? StandardSchemaV1.InferInput<In> : unknown;

/** Jobs per statement of a bulk enqueue. */
const BULK = 2000;

/** Where an installation is, and what to let go of when it is closed. */
export interface Connection {
  url: string;
  directUrl?: string | undefined;
  /** Where migrations log in as somebody else than the workers do. */
  admin?: { url: string; logins: string[] };
  maxConnections: number | undefined;
  connectTimeoutSeconds: number | undefined;
  onClose?: () => Promise<void>;
}

/** An installation of Oracle Worker: submit jobs, watch them, steer them. */
export class Oracle {
  /** Runs every statement as the restricted role. For this package's own parts. */
  readonly db: Database;
  private readonly waiter: Waiter;
  private closed: Promise<void> | undefined;

  constructor(
    readonly settings: Settings,
    private readonly connection: Connection,
  ) {
    this.db = new Database({
      url: connection.url,
      directUrl: connection.directUrl,
      schema: settings.ORACLE_SCHEMA,
      role: "worker",
      maxConnections: connection.maxConnections ?? 10,
      connectTimeoutMs: (connection.connectTimeoutSeconds ?? 10) * 1000,
    });
    this.waiter = new Waiter(this.db);
  }

  /** Brings the schema up to date; returns the names of the migrations applied. */
  async migrate(): Promise<string[]> {
    const applied = await this.withAdmin((db) => migrate(db, this.connection.admin?.logins));
    return applied.map(({ number, name }) => `${String(number).padStart(3, "0")}_${name}`);
  }

  /** Does something with the login that migrates. For this package's own parts. */
  async withAdmin<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const { admin } = this.connection;
    if (!admin) return work(this.db);
    const db = this.db.with({ url: admin.url });
    try {
      return await work(db);
    } finally {
      await db.close();
    }
  }

  /** Refuses a schema that is missing, older or newer than this program, and logins that are too strong. */
  async check(): Promise<void> {
    await checkSchema(this.db, this.settings.STRICT_ROLES);
  }

  /** Submits one job; with `client`, inside that client's transaction. */
  async enqueue<D extends JobDefinition | string>(
    job: D,
    input: Input<D>,
    options: EnqueueOptions & { client?: SqlClient } = {},
  ): Promise<JobHandle<Output<D>>> {
    const { client, ...rest } = options;
    const [enqueued] = await enqueue(this.db, [await this.prepare(job, input, rest)], client);
    return this.handle(enqueued as Enqueued);
  }

  /** Submits many jobs of one type with the same options, a few thousand per statement. */
  async enqueueMany<D extends JobDefinition | string>(
    job: D,
    inputs: Input<D>[],
    options: Omit<EnqueueOptions, "key"> & { keys?: string[]; client?: SqlClient } = {},
  ): Promise<JobHandle<Output<D>>[]> {
    const { client, keys, ...rest } = options;
    if (keys && keys.length !== inputs.length) {
      throw new OracleError(
        "INVALID_ARGUMENT",
        `keys has ${keys.length} entries for ${inputs.length} inputs.`,
        {
          field: "keys",
        },
      );
    }
    // Everything is checked before anything is stored.
    const jobs: NewJob[] = [];
    for (const [index, input] of inputs.entries()) {
      const key = keys?.[index];
      jobs.push(await this.prepare(job, input, key === undefined ? rest : { ...rest, key }));
    }
    return (await this.submit(jobs, client)).map((one) => this.handle(one));
  }

  /** Submits prepared rows, a few thousand per statement, two statements at a time; one in a client's transaction. */
  async submit(jobs: NewJob[], client?: SqlClient): Promise<Enqueued[]> {
    const chunks = Array.from({ length: Math.ceil(jobs.length / BULK) }, (_, n) =>
      jobs.slice(n * BULK, (n + 1) * BULK),
    );
    const stored: Enqueued[][] = [];
    let next = 0;
    const lane = async () => {
      for (let n = next++; n < chunks.length; n = next++) {
        stored[n] = await enqueue(this.db, chunks[n] as NewJob[], client);
      }
    };
    const lanes = await Promise.allSettled(client ? [lane()] : [lane(), lane()]);
    const failed = lanes.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
    return stored.flat();
  }

  /** Checks a submission; a definition's input schema is applied here already, so that a mistake shows at once. */
  async prepare(job: JobDefinition | string, input: unknown, options: EnqueueOptions): Promise<NewJob> {
    const limits = { maxBytes: this.settings.MAX_PAYLOAD_BYTES, maxDepth: this.settings.MAX_PAYLOAD_DEPTH };
    if (typeof job === "string") return toNewJob(job, input, options, limits);
    const row = toNewJob(job.type, input, options, limits);
    await validate(job.input, input, "INPUT_INVALID");
    return row;
  }

  /** A job that exists already. */
  job<T = JsonValue>(jobId: string): JobHandle<T> {
    return this.handle({ jobId, created: false, joined: null });
  }

  get(jobId: string): Promise<(Job & { input: JsonValue }) | undefined> {
    return getJob(this.db, jobId);
  }

  list(filter: JobFilter = {}): Promise<{ items: Job[]; next: string | null }> {
    return list(this.db, filter);
  }

  attempts(jobId: string): Promise<Attempt[]> {
    return getAttempts(this.db, jobId);
  }

  result(jobId: string): Promise<Result | undefined> {
    return getResult(this.db, jobId);
  }

  cancel(jobId: string): Promise<Job> {
    return cancel(this.db, jobId);
  }

  /** Puts a failed or cancelled job back in its queue. */
  retry(jobId: string): Promise<Job> {
    return retry(this.db, jobId);
  }

  retryAll(state: JobState, tenant?: string): Promise<number> {
    return retryAll(this.db, state, tenant);
  }

  /** A new job like an old one, with the same input or another. */
  async replay(jobId: string, input?: unknown): Promise<JobHandle> {
    const old = await requireJob(this.db, jobId);
    return this.enqueue(old.type, input === undefined ? old.input : input, {
      queue: old.queue,
      priority: old.priority,
      maxAttempts: Math.min(old.maxAttempts, 1000),
      tenant: old.tenantId,
      replayOf: old.jobId,
      ...(old.timeoutSeconds === null ? {} : { timeoutSeconds: old.timeoutSeconds }),
      ...(old.handlerVersion === null ? {} : { version: old.handlerVersion }),
    });
  }

  /** Waits for the end of a job, whatever it is; undefined when the time is up. */
  wait(jobId: string, options: { timeoutSeconds?: number } = {}): Promise<Job | undefined> {
    return this.waiter.finished(checkJobId(jobId), (options.timeoutSeconds ?? 3600) * 1000);
  }

  /** Tries to win the lease of one job by its id; a loss says why. The winner must renew and settle it. */
  acquire(jobId: string, workerId: string): Promise<Acquired> {
    return acquire(this.db, { jobId, workerId, leaseSeconds: this.settings.LEASE_SECONDS });
  }

  /** Starts one job by its id without waiting: JobLockConflict or JobPreconditionError say why not. */
  startJob(jobId: string, workerId: string): ReturnType<typeof startJob> {
    return startJob(this.db, { jobId, workerId, leaseSeconds: this.settings.LEASE_SECONDS });
  }

  queues(): Promise<Queue[]> {
    return queues(this.db);
  }

  pauseQueue(queue: string): Promise<void> {
    return pauseQueue(this.db, queue, true);
  }

  resumeQueue(queue: string): Promise<void> {
    return pauseQueue(this.db, queue, false);
  }

  setQueueAgeing(queue: string, seconds: number | null): Promise<void> {
    return setQueueAgeing(this.db, queue, seconds);
  }

  close(): Promise<void> {
    this.closed ??= this.db.close().then(() => this.connection.onClose?.());
    return this.closed;
  }

  private handle<T>(enqueued: Enqueued): JobHandle<T> {
    return new JobHandle<T>(this, enqueued);
  }
}

/** One submitted job. */
export class JobHandle<T = JsonValue> {
  readonly id: string;
  /** False: the job was there already. */
  readonly created: boolean;
  /** How an existing job was found. */
  readonly joined: Enqueued["joined"];

  constructor(
    private readonly oracle: Oracle,
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
    return (await requireJob(this.oracle.db, this.id)).state;
  }

  cancel(): Promise<Job> {
    return this.oracle.cancel(this.id);
  }
}
