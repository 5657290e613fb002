import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectOptions, connect } from "../connect.js";
import { OracleError } from "../core/errors.js";
import type { Attempt as AttemptRecord, Job, Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { parseDuration } from "../core/settings.js";
import type { JobDefinition } from "../handlers/define.js";
import { inlineRunner } from "../handlers/inline.js";
import { Registry } from "../handlers/registry.js";
import type { Oracle } from "../oracle.js";
import { promote } from "../store/promote.js";
import { reclaim } from "../store/reclaim.js";
import { settle } from "../store/settle.js";
import { shiftTime } from "../store/shift-time.js";
import { Attempt } from "../worker/attempt.js";
import { Claimer } from "../worker/claimer.js";
import { execute } from "../worker/execute.js";
import { ArtifactKeeper } from "../worker/keep-artifact.js";
import { Records } from "../worker/records.js";
import { Reporter } from "../worker/reporter.js";
import { LeaseServices } from "../worker/services.js";

export interface TestOracleOptions {
  jobs: JobDefinition[];
  /** Default: an embedded Postgres in a temporary folder, gone after `close`. */
  databaseUrl?: string;
  schema?: string;
}

/** A job after it was run, with everything a test may want to look at. */
export interface RanJob {
  job: Job;
  attempts: AttemptRecord[];
  result: JsonValue | undefined;
}

const LEASE_SECONDS = 3600;

/** Opens a real database for tests of handlers: jobs run inline, and time passes when told to. */
export async function openTestOracle(options: TestOracleOptions): Promise<TestOracle> {
  const { databaseUrl, schema } = options;
  const directory = mkdtempSync(join(tmpdir(), "oracle-worker-"));
  const target: ConnectOptions = databaseUrl === undefined ? { embedded: { directory } } : { databaseUrl };
  const artifacts = `file:${join(directory, "artifacts")}`;
  const oracle = await connect({ ...target, artifacts, ...(schema === undefined ? {} : { schema }) });
  await oracle.migrate();
  const keeper = new ArtifactKeeper(oracle.db, await oracle.artifactStore());
  return new TestOracle(oracle, new Registry(options.jobs), keeper, directory);
}

export class TestOracle {
  private readonly reporter: Reporter;

  constructor(
    /** The same object the application uses. */
    readonly oracle: Oracle,
    private readonly registry: Registry,
    private readonly artifacts: ArtifactKeeper,
    private readonly directory: string,
  ) {
    this.reporter = new Reporter(
      oracle.db,
      () => {},
      () => {},
    );
  }

  /** Runs everything that is ready, one job after the other, in this process; returns how many attempts ran. */
  async runReady(): Promise<number> {
    let count = 0;
    for (;;) {
      const leases = await this.takeOne();
      if (leases.length === 0) return count;
      for (const lease of leases) await this.run(lease);
      count += leases.length;
    }
  }

  /** Submits a job and runs what is ready; later attempts need `advance`. */
  async runJob(definition: JobDefinition, input: unknown): Promise<RanJob> {
    const { id } = await this.oracle.enqueue(definition, input);
    await this.runReady();
    return this.look(id);
  }

  async look(jobId: string): Promise<RanJob> {
    const job = await this.oracle.get(jobId);
    if (!job) throw new OracleError("JOB_NOT_FOUND", `There is no job ${jobId}.`, { jobId });
    const result = await this.oracle.result(jobId);
    return { job, attempts: await this.oracle.attempts(jobId), result: result?.payload };
  }

  /** Lets time pass: `advance("1h")`, `advance(30)`. Delays, leases and deadlines move with it. */
  async advance(duration: string | number): Promise<void> {
    const seconds = typeof duration === "number" ? duration : parseDuration(duration);
    if (seconds === undefined || !(seconds >= 0)) {
      throw new OracleError(
        "INVALID_ARGUMENT",
        `advance: ${duration} is not a duration such as 30, "30s" or "1h".`,
        {
          field: "duration",
        },
      );
    }
    await this.oracle.withAdmin((db) => shiftTime(db, seconds));
  }

  /** Jobs submitted so far, oldest first, with their inputs. */
  async enqueued(filter: { type?: string; queue?: string } = {}): Promise<(Job & { input: JsonValue })[]> {
    const { items } = await this.oracle.list({ ...filter, limit: 1000 });
    const jobs = await Promise.all(items.map(({ jobId }) => this.oracle.get(jobId)));
    return jobs.filter((job) => job !== undefined).reverse();
  }

  async close(): Promise<void> {
    await this.reporter.close();
    await this.oracle.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  private async takeOne(): Promise<Lease[]> {
    const { db } = this.oracle;
    const queues = (await this.oracle.queues()).map(({ queue }) => queue);
    const workerId = "testing";
    const versions = this.registry.versions();
    await promote(db);
    const expired = await reclaim(db, { workerId, queues, leaseSeconds: LEASE_SECONDS, limit: 1, versions });
    if (expired.leases.length > 0) return expired.leases;
    return (await new Claimer(db, { workerId, queues, leaseSeconds: LEASE_SECONDS, versions }).take(1))
      .leases;
  }

  private async run(lease: Lease): Promise<void> {
    const definition = this.registry.find(lease.type);
    const { MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH } = this.oracle.settings;
    const limits = { maxBytes: MAX_PAYLOAD_BYTES, maxDepth: MAX_PAYLOAD_DEPTH };
    const attempt = new Attempt(lease, "", 0, Number.POSITIVE_INFINITY);
    const services = new LeaseServices(lease, {
      reporter: this.reporter,
      records: new Records(this.oracle.db, limits, this.artifacts),
      artifacts: this.artifacts,
      groups: undefined,
      log: undefined,
    });
    const message = `No job of type ${lease.type} was given to openTestOracle.`;
    const outcome = definition
      ? await execute(attempt, definition, inlineRunner, services, limits)
      : ({ kind: "terminal", error: { code: "UNSUPPORTED_JOB_TYPE", message, retryable: false } } as const);
    await this.reporter.finish(lease.attemptId);
    await settle(this.oracle.db, [{ lease, outcome }]);
  }
}
