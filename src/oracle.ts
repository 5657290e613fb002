import { collectOrphans } from "./artifacts/collect.js";
import { openArtifactStore } from "./artifacts/open.js";
import type { ArtifactStore } from "./artifacts/store.js";
import type { Connection } from "./connection.js";
import type { Dispatcher } from "./core/dispatch.js";
import type { Effect, Step } from "./core/effect.js";
import type { Artifact, Attempt, Job, LogLine, Result } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import type { Settings } from "./core/settings.js";
import type { JobState } from "./core/states.js";
import type { Tenant, TenantLimits } from "./core/tenant.js";
import type { JobDefinition } from "./handlers/define.js";
import { validate } from "./handlers/validate.js";
import { type Input, JobHandle, type Output } from "./job-handle.js";
import { type OpenedArtifact, openArtifact } from "./open-artifact.js";
import { type Acquired, acquire, startJob } from "./store/acquire.js";
import { findReferences, listArtifacts } from "./store/artifact.js";
import { checkSchema } from "./store/check-schema.js";
import { cancel, retry, retryAll } from "./store/control.js";
import { Database } from "./store/database.js";
import { checkFork } from "./store/fork.js";
import { type JobFilter, type JobPage, list, type Paging } from "./store/list.js";
import { getEffects } from "./store/list-effects.js";
import { getLogs, type LogPage } from "./store/logs.js";
import { migrate } from "./store/migrate.js";
import type { NewJob } from "./store/new-job.js";
import { approve, reject } from "./store/plan.js";
import { pauseQueue, type Queue, queues, setQueueAgeing } from "./store/queues.js";
import { checkJobId, getAttempts, getJob, getResult, requireJob } from "./store/read.js";
import { type Finding, resolve } from "./store/resolve.js";
import { getSteps, takeOverSteps } from "./store/steps.js";
import { setTenant, tenants } from "./store/tenants.js";
import { Waiter } from "./store/wait.js";
import {
  checkMany,
  checkSingle,
  type EnqueueOptions,
  likeness,
  type ManyOptions,
  type SingleOptions,
  toNewJob,
  typeOf,
} from "./submit.js";
import { Submitter } from "./submitter.js";

/** An installation of Oracle Worker: submit jobs, watch them, steer them. */
export class Oracle {
  /** Runs every statement as the restricted role. For this package's own parts. */
  readonly db: Database;
  /** Stores prepared jobs. For this package's own parts. */
  readonly submitter: Submitter;
  private readonly waiter: Waiter;
  private openedStore: Promise<ArtifactStore> | undefined;
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
    this.submitter = new Submitter(this.db, connection.dispatcher);
  }

  /** For this package's own parts. */
  get dispatcher(): Dispatcher | undefined {
    return this.connection.dispatcher;
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

  /** Submits one job; with `client`, inside that client's transaction. Others that come meanwhile share a statement. */
  async enqueue<D extends JobDefinition | string>(
    job: D,
    input: Input<D>,
    options: SingleOptions = {},
  ): Promise<JobHandle<Output<D>>> {
    checkSingle(options);
    const { client, ...rest } = options;
    const row = await this.prepare(job, input, rest);
    return new JobHandle(this, await this.submitter.one(row, client));
  }

  /** Submits many jobs of one type with the same options, a few thousand per statement. */
  async enqueueMany<D extends JobDefinition | string>(
    job: D,
    inputs: Input<D>[],
    options: ManyOptions = {},
  ): Promise<JobHandle<Output<D>>[]> {
    checkMany(inputs, options);
    const { client, keys, ...rest } = options;
    // Everything is checked before anything is stored.
    const jobs: NewJob[] = [];
    for (const [index, input] of inputs.entries()) {
      const key = keys?.[index];
      const row = this.prepare(job, input, key === undefined ? rest : { ...rest, key });
      jobs.push(row instanceof Promise ? await row : row);
    }
    return (await this.submitter.many(jobs, client)).map((one) => new JobHandle(this, one));
  }

  /** Checks a submission; a definition's input schema is applied here already, so that a mistake shows at once. */
  prepare(job: JobDefinition | string, input: unknown, options: EnqueueOptions): NewJob | Promise<NewJob> {
    const limits = { maxBytes: this.settings.MAX_PAYLOAD_BYTES, maxDepth: this.settings.MAX_PAYLOAD_DEPTH };
    const row = toNewJob(typeOf(job), input, options, limits);
    const checked = typeof job === "string" ? undefined : validate(job.input, input, "INPUT_INVALID");
    return checked instanceof Promise ? checked.then(() => row) : row;
  }

  /** A job that exists already. */
  job<T = JsonValue>(jobId: string): JobHandle<T> {
    return new JobHandle(this, { jobId, created: false, joined: null });
  }

  get(jobId: string): Promise<(Job & { input: JsonValue }) | undefined> {
    return getJob(this.db, jobId);
  }

  list(filter: JobFilter & Paging = {}): Promise<JobPage> {
    return list(this.db, filter);
  }

  attempts(jobId: string): Promise<Attempt[]> {
    return getAttempts(this.db, jobId);
  }

  /** What a job's attempts have logged, in order; `after` goes on behind a line that is known. */
  logs(jobId: string, page: LogPage = {}): Promise<LogLine[]> {
    return getLogs(this.db, jobId, page);
  }

  /** A job's artifacts, oldest first. */
  artifacts(jobId: string): Promise<Artifact[]> {
    return listArtifacts(this.db, jobId);
  }

  /** An artifact with its content, by its id or digest; undefined when there is none. */
  openArtifact(idOrSha256: string): Promise<OpenedArtifact | undefined> {
    return openArtifact(this.db, () => this.artifactStore(), idOrSha256);
  }

  /** Removes stored bytes that no artifact needs any more and that are older than an hour; returns how many. */
  async collectArtifacts(): Promise<number> {
    return collectOrphans(await this.artifactStore(), (references) => findReferences(this.db, references));
  }

  /** Where artifacts' bytes are. For this package's own parts. */
  artifactStore(): Promise<ArtifactStore> {
    this.openedStore ??= openArtifactStore(this.settings.ARTIFACTS);
    return this.openedStore;
  }

  result(jobId: string): Promise<Result | undefined> {
    return getResult(this.db, jobId);
  }

  /** A job's remembered steps. */
  steps(jobId: string): Promise<Step[]> {
    return getSteps(this.db, jobId);
  }

  /** What a job has done outside, or is about to. */
  effects(jobId: string): Promise<Effect[]> {
    return getEffects(this.db, jobId);
  }

  /** A person's word on an effect in doubt: it happened, it did not, or it did not and is to be sent again. */
  resolveEffect(effectId: string, finding: Finding): Promise<Effect> {
    return resolve(this.db, effectId, finding);
  }

  /** Lets a job that awaits approval send what it has planned. */
  approve(jobId: string): Promise<Job> {
    return approve(this.db, jobId);
  }

  /** Ends a job that awaits approval. */
  reject(jobId: string, why: string): Promise<Job> {
    return reject(this.db, jobId, why);
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
    return this.enqueue(old.type, input === undefined ? old.input : input, likeness(old));
  }

  /** A new job like an old one that takes over what it had behind it before a step, and goes on from there. */
  async replayFrom(jobId: string, step: string): Promise<JobHandle> {
    const old = await requireJob(this.db, jobId);
    await checkFork(this.db, jobId, step);
    return this.db.transaction(async (client) => {
      const job = await this.enqueue(old.type, old.input, { ...likeness(old), client });
      await takeOverSteps(this.db, job.id, step, client);
      return job;
    });
  }

  /** Waits for the end of a job, whatever it is; undefined when the time is up. */
  async wait(jobId: string, options: { timeoutSeconds?: number } = {}): Promise<Job | undefined> {
    const { timeoutSeconds = 3600 } = options;
    return this.waiter.finished(checkJobId(jobId), timeoutSeconds);
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

  /** Tenants with their limits, what waits and runs, and what they used in the last seconds; default: a day. */
  tenants(options: { sinceSeconds?: number } = {}): Promise<Tenant[]> {
    return tenants(this.db, options.sinceSeconds);
  }

  /** Gives a tenant settings of its own; refused if it has some already. */
  addTenant(tenant: string, limits: Partial<TenantLimits> = {}): Promise<TenantLimits> {
    return setTenant(this.db, tenant, limits, true);
  }

  /** Changes what a tenant may do; what is not given stays, null takes a limit away. */
  setTenant(tenant: string, limits: Partial<TenantLimits>): Promise<TenantLimits> {
    return setTenant(this.db, tenant, limits);
  }

  close(): Promise<void> {
    this.closed ??= this.shut();
    return this.closed;
  }

  private async shut(): Promise<void> {
    await this.submitter.close();
    await this.db.close();
    await this.connection.onClose?.();
  }
}
