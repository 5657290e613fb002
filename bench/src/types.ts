import type { PoolClient } from "pg";

/** What every job carries. `at` is stamped by a producer that wants the pickup latency; `blob` pads to 4 KB. */
export interface JobInput {
  n: number;
  at?: number;
  blob?: string;
}

export interface JobOutput {
  ok: true;
  n: number;
  blob?: string;
}

export type Handler = (input: JobInput) => JobOutput | Promise<JobOutput>;

/**
 * throughput: the settings that drain fastest; latency: those that pick up one job soonest; in-flight: as many
 * jobs at once as asked for. A contestant states in `settings` what it does for each.
 */
export type WorkerMode = "throughput" | "latency" | "in-flight";

export interface WorkerOptions {
  mode: WorkerMode;
  concurrency?: number;
  /** Size of each input and result, for contestants whose best batch depends on it. */
  payloadBytes?: number;
}

export interface RunningWorker {
  /** Resolves when the store (not only the handler) says that nothing is left. */
  drained(): Promise<void>;
  stop(): Promise<void>;
}

/** Where the servers of this run are; the database is fresh for each run of each contestant. */
export interface Place {
  postgresUrl: string;
  redisUrl: string;
}

export interface QueueSession {
  /** Creates the schema; called once per fresh place, before anything else. */
  install(): Promise<void>;
  enqueue(input: JobInput): Promise<void>;
  enqueueMany(inputs: JobInput[], options?: { delaySeconds?: number; tenant?: string }): Promise<void>;
  /** Enqueue inside the caller's own Postgres transaction; absent where the peer cannot. */
  enqueueIn?(client: PoolClient, input: JobInput): Promise<void>;
  enqueueManyIn?(client: PoolClient, inputs: JobInput[]): Promise<void>;
  startWorker(handler: Handler, options: WorkerOptions): Promise<RunningWorker>;
  /** How many jobs the store holds that have not finished: what was enqueued must really be there. */
  waiting(): Promise<number>;
  /** How many finished jobs the store still knows of; null where nothing is kept. */
  finished(): Promise<number | null>;
  close(): Promise<void>;
}

export interface StepsSession {
  install(): Promise<void>;
  /** Runs `jobs` durable jobs of `steps` steps each, `atATime` in parallel, and resolves when all are durable. */
  run(jobs: number, steps: number, atATime: number): Promise<void>;
  /** Step results in the store: a run that left none has measured nothing. */
  durableSteps(): Promise<number>;
  close(): Promise<void>;
}

export interface PythonSession {
  install(): Promise<void>;
  /** Enqueues `jobs` Python jobs and resolves when all have finished; returns the seconds the draining took. */
  run(jobs: number): Promise<number>;
  close(): Promise<void>;
}

export interface Recovery {
  /** What the documentation says happens after SIGKILL with default settings. */
  documented: string;
  /** The documented default in seconds; null: the job does not run again by itself. */
  documentedSeconds: number | null;
  /** Whether waiting for it is bearable, so that the harness measures it. */
  measure: boolean;
}

export interface Contestant {
  name: string;
  side: "ours" | "peer" | "floor";
  store: "postgres" | "redis";
  /** Asked for only by the driver: it may cost a process. */
  version(): string;
  /** The documented best settings it runs with, in words; printed under the table. */
  settings: string;
  /** What is left afterwards: results? attempts? durable? */
  keeps: string;
  /** Slow contestants run this share of the jobs, so that a round stays bounded; rates stay comparable. */
  jobsShare?: number;
  /** Share of the load in `pickup` that it can keep up with at all; the table states the rate. */
  loadShare?: number;
  /** Needs a Redis beside its store. */
  usesRedis?: true;
  /** Redis settings applied before each of its runs. */
  redisConfig?: Record<string, string>;
  recovery?: Recovery;
  /** Workloads (or all) whose --quick it would make too long; it takes part there when asked for by name. */
  fullOnly?: string[] | "all";
  /** Only in these workloads (the floor, say); absent: wherever it has the capability. */
  only?: string[];
  /** Why it cannot run here, or undefined when it can. */
  unavailable?(): Promise<string | undefined>;
  /** Its queues are shared between tenants in turn. */
  sharesByTenant?: true;
  openQueue?(place: Place): Promise<QueueSession>;
  openSteps?(place: Place): Promise<StepsSession>;
  openPython?(place: Place): Promise<PythonSession>;
}

export interface Measurement {
  metric: string;
  unit: string;
  better: "higher" | "lower";
  value: number;
  /** Said beside the figure. */
  note?: string;
  /** False: the documentation's word, shown apart from what was measured. */
  measured?: false;
}

export interface Options {
  quick: boolean;
  workloads: string[];
  contestants: string[];
  /** Whether --contestants named them, so that nothing is left out for the sake of time. */
  named: boolean;
  rounds: number | undefined;
  jobs: number | undefined;
  seconds: number | undefined;
  out: string;
}
