import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectOptions, connect } from "../connect.js";
import { OracleError } from "../core/errors.js";
import type { Attempt as AttemptRecord, Job, Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { parseDuration } from "../core/settings.js";
import type { JobDefinition } from "../handlers/define.js";
import { Registry } from "../handlers/registry.js";
import type { Oracle } from "../oracle.js";
import { claim } from "../store/claim.js";
import { discover } from "../store/discover.js";
import { promote } from "../store/promote.js";
import { reclaim } from "../store/reclaim.js";
import { settle } from "../store/settle.js";
import { shiftTime } from "../store/shift-time.js";
import { Attempt, execute } from "../worker/execute.js";

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

const silent = { info() {}, warn() {}, error() {} };
const LEASE_SECONDS = 3600;

/** Opens a real database for tests of handlers: jobs run inline, and time passes when told to. */
export async function openTestOracle(options: TestOracleOptions): Promise<TestOracle> {
  const { databaseUrl, schema } = options;
  const directory = databaseUrl === undefined ? mkdtempSync(join(tmpdir(), "oracle-worker-")) : undefined;
  const target: ConnectOptions = directory
    ? { embedded: { directory } }
    : { databaseUrl: databaseUrl as string };
  const oracle = await connect({ ...target, ...(schema === undefined ? {} : { schema }) });
  await oracle.migrate();
  return new TestOracle(oracle, new Registry(options.jobs), directory);
}

export class TestOracle {
  constructor(
    /** The same object the application uses. */
    readonly oracle: Oracle,
    private readonly registry: Registry,
    private readonly directory: string | undefined,
  ) {}

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
    await this.oracle.close();
    if (this.directory) rmSync(this.directory, { recursive: true, force: true });
  }

  private async takeOne(): Promise<Lease[]> {
    const { db } = this.oracle;
    const queues = (await this.oracle.queues()).map(({ queue }) => queue);
    const workerId = "testing";
    await promote(db);
    const expired = await reclaim(db, { workerId, queues, leaseSeconds: LEASE_SECONDS, limit: 1 });
    if (expired.leases.length > 0) return expired.leases;
    const [slice] = await discover(db, queues.length > 0 ? queues : ["default"], "", 1);
    if (!slice) return [];
    const quotas = [{ slice, quota: 1 }];
    return (await claim(db, { workerId, leaseSeconds: LEASE_SECONDS, quotas })).leases;
  }

  private async run(lease: Lease): Promise<void> {
    const definition = this.registry.find(lease.type);
    const { MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH } = this.oracle.settings;
    const limits = { maxBytes: MAX_PAYLOAD_BYTES, maxDepth: MAX_PAYLOAD_DEPTH };
    const attempt = new Attempt(lease, "", Number.POSITIVE_INFINITY);
    const message = `No job of type ${lease.type} was given to openTestOracle.`;
    const outcome = definition
      ? await execute(attempt, definition, silent, limits)
      : ({ kind: "terminal", error: { code: "UNSUPPORTED_JOB_TYPE", message, retryable: false } } as const);
    await settle(this.oracle.db, [{ lease, outcome }]);
  }
}
