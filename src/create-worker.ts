import { hostname } from "node:os";
import { OracleError } from "./core/errors.js";
import type { JobLog, WorkerEventListener } from "./core/events.js";
import type { Lease } from "./core/job.js";
import { checkOptionNames, type OptionNames } from "./core/options.js";
import { isJobDefinition, type JobDefinition } from "./handlers/define.js";
import { Registry } from "./handlers/registry.js";
import { Runners } from "./handlers/runners.js";
import type { Oracle } from "./oracle.js";
import { checkTenantId, type Database } from "./store/database.js";
import { checkQueueName } from "./store/queues.js";
import { version } from "./version.js";
import { ActivityRecorder } from "./worker/activity.js";
import { uniqueWorkerId } from "./worker/id.js";
import { ArtifactKeeper } from "./worker/keep-artifact.js";
import type { RetentionPolicy } from "./worker/pruner.js";
import { Records } from "./worker/records.js";
import { Reporter } from "./worker/reporter.js";
import { LeaseServices } from "./worker/services.js";
import type { Journal } from "./worker/slots.js";
import { Worker } from "./worker/worker.js";

export interface CreateWorkerOptions {
  jobs: JobDefinition[];
  /** Default `["default"]`, or the environment's QUEUES. */
  queues?: string[];
  /** Serves this tenant only. Default: all. */
  tenant?: string;
  /** Jobs at once. Default 10, or the environment's CONCURRENCY. */
  concurrency?: number;
  /** How long a lease lasts without renewal. Default 60, or the environment's LEASE_SECONDS. */
  leaseSeconds?: number;
  /** How often to look without being told. Default 1, or the environment's POLL_INTERVAL. */
  pollSeconds?: number;
  /** How long `stop` waits for running jobs. Default 30, or the environment's SHUTDOWN_GRACE. */
  shutdownGraceSeconds?: number;
  /** A name; a suffix makes it unique to this process. Default: the host's name. */
  workerId?: string;
  onEvent?: WorkerEventListener;
  /** Where handlers' `log` goes besides the job's own log in the database. Default: nowhere. */
  log?: (lease: Lease) => JobLog;
  /** @internal For the supervisor. */
  journal?: Journal;
}

const optionNames: OptionNames<CreateWorkerOptions> = {
  jobs: true,
  queues: true,
  tenant: true,
  concurrency: true,
  leaseSeconds: true,
  pollSeconds: true,
  shutdownGraceSeconds: true,
  workerId: true,
  onEvent: true,
  log: true,
  journal: false,
};

/** Starts a worker in this process. It never ends its host: a handler's fault is its attempt's fault. */
export async function createWorker(oracle: Oracle, options: CreateWorkerOptions): Promise<Worker> {
  checkOptionNames("createWorker", options, optionNames);
  checkOptions(options);
  const { settings } = oracle;
  const { journal } = options;
  await oracle.check();
  const registry = new Registry(options.jobs);
  const workerId = options.workerId ?? uniqueWorkerId(settings.WORKER_ID);
  const queues = options.queues ?? settings.QUEUES;
  const concurrency = options.concurrency ?? settings.CONCURRENCY;
  const leaseSeconds = options.leaseSeconds ?? settings.LEASE_SECONDS;
  const limits = { maxBytes: settings.MAX_PAYLOAD_BYTES, maxDepth: settings.MAX_PAYLOAD_DEPTH };
  const database = oracle.db.with({ role: "worker", pinPlans: true, maxConnections: 7 });
  const activity = new ActivityRecorder(database, workerId);
  const emit: WorkerEventListener = (event) => {
    activity.hear(event);
    options.onEvent?.(event);
  };
  const artifacts = new ArtifactKeeper(database, await oracle.artifactStore());
  const reporter = openReporter(database, workerId, emit);
  const groups = journal && {
    opened: (pid: number) => journal.groupOpened(pid),
    closed: (pid: number) => journal.groupClosed(pid),
  };
  const parts = {
    groups,
    reporter,
    records: new Records(database, limits, artifacts),
    artifacts,
    log: options.log,
  };
  const worker = new Worker(database, registry, {
    workerId,
    queues,
    tenant: options.tenant,
    concurrency,
    leaseSeconds,
    versions: registry.versions(),
    pollMs: (options.pollSeconds ?? settings.POLL_INTERVAL) * 1000,
    graceMs: (options.shutdownGraceSeconds ?? settings.SHUTDOWN_GRACE) * 1000,
    limits,
    keeper: {
      supervised: options.journal !== undefined,
      database: database.options,
      worker: {
        workerId,
        host: hostname(),
        pid: process.pid,
        version,
        concurrency,
        leaseSeconds,
        queues,
        tenant: options.tenant,
        jobTypes: registry.types(),
      },
    },
    runners: new Runners(groups),
    services: (lease) => new LeaseServices(lease, parts),
    reporter,
    emit,
    activity,
    journal,
    dispatcher: oracle.dispatcher,
    retention: retentionOf(oracle),
  });
  await worker.start();
  return worker;
}

function retentionOf(oracle: Oracle): RetentionPolicy {
  const { RETENTION: retentionSeconds, KEY_PROTECTION: keyProtectionSeconds } = oracle.settings;
  return { retentionSeconds, keyProtectionSeconds, collectArtifacts: () => oracle.collectArtifacts() };
}

function openReporter(database: Database, workerId: string, emit: WorkerEventListener): Reporter {
  const during = "report";
  return new Reporter(
    database,
    (error) => emit({ event: "database.trouble", workerId, during, error }),
    () => emit({ event: "database.recovered", workerId, during }),
  );
}

function checkOptions({ jobs, queues, tenant, onEvent, ...numbers }: CreateWorkerOptions): void {
  const check = (field: string, right: boolean, what: string) => {
    if (right) return;
    throw new OracleError("INVALID_ARGUMENT", `createWorker: ${field} must be ${what}.`, { field });
  };
  const between = (field: "concurrency" | Seconds, least: number, most: number) => {
    const value = numbers[field];
    const right = value === undefined || (typeof value === "number" && value >= least && value <= most);
    check(field, right, `a number from ${least} to ${most}`);
  };
  check("jobs", Array.isArray(jobs) && jobs.every(isJobDefinition), "a list of values made with defineJob");
  check("queues", queues === undefined || Array.isArray(queues), "a list of names");
  for (const queue of queues ?? []) checkQueueName(queue);
  if (tenant !== undefined) checkTenantId(tenant);
  check("onEvent", onEvent === undefined || typeof onEvent === "function", "a function");
  check("concurrency", Number.isInteger(numbers.concurrency ?? 1), "a whole number");
  between("concurrency", 1, 100_000);
  between("leaseSeconds", 0.2, 86_400);
  between("pollSeconds", 0.01, 3600);
  between("shutdownGraceSeconds", 0, 86_400);
}

type Seconds = "leaseSeconds" | "pollSeconds" | "shutdownGraceSeconds";
