import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PoolClient } from "pg";

/**
 * The documented API of oracle-worker, as far as the benchmark uses it. Declared here, and loaded by a dynamic
 * import, so that the harness type-checks and runs before the product is built.
 */
export interface OracleApi {
  connect(options: { databaseUrl: string; dispatcher?: Dispatcher }): Promise<Oracle>;
  createWorker(oracle: Oracle, options: { jobs: Job[]; concurrency: number }): Promise<OracleWorker>;
  defineJob(definition: JobDefinition): Job;
}

export interface Dispatcher {
  close(): Promise<void>;
}

export interface Oracle {
  migrate(): Promise<unknown>;
  enqueue(
    job: Job,
    input: unknown,
    options?: EnqueueOptions,
  ): Promise<{ result(options?: object): Promise<unknown> }>;
  enqueueMany(job: Job, inputs: unknown[], options?: EnqueueOptions): Promise<unknown>;
  close(): Promise<void>;
}

export interface EnqueueOptions {
  client?: PoolClient;
  runAfter?: Date;
  tenant?: string;
}

export interface OracleWorker {
  drained(): Promise<void>;
  stop(): Promise<void>;
}

export type Job = object;

export interface JobContext {
  input: unknown;
  step<T>(name: string, work: () => Promise<T> | T): Promise<T>;
}

export interface JobDefinition {
  type: string;
  input: StandardSchema;
  output: StandardSchema;
  timeoutSeconds?: number;
  executable?: string[];
  warm?: number;
  run?(context: JobContext): Promise<unknown> | unknown;
}

/** The Standard Schema that lets everything through: no peer validates, so validating would measure zod. */
export interface StandardSchema {
  "~standard": { version: 1; vendor: string; validate(value: unknown): { value: unknown } };
}

export const anything: StandardSchema = {
  "~standard": { version: 1, vendor: "bench", validate: (value) => ({ value }) },
};

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const ENTRY = join(ROOT, "dist", "index.js");

export async function loadOracle(): Promise<OracleApi> {
  return (await import(pathToFileURL(ENTRY).href)) as OracleApi;
}

export async function openDispatcher(url: string): Promise<Dispatcher> {
  const entry = pathToFileURL(join(ROOT, "dist", "dispatch", "index.js")).href;
  const { redisDispatcher } = (await import(entry)) as {
    redisDispatcher(options: { url: string }): Dispatcher;
  };
  return redisDispatcher({ url });
}

export async function whyNotBuilt(): Promise<string | undefined> {
  if (!existsSync(ENTRY)) return "dist/index.js is not built: run npm run build at the root";
  try {
    const api: Partial<OracleApi> = await loadOracle();
    const absent = (["connect", "createWorker", "defineJob"] as const).filter((name) => !api[name]);
    return absent.length > 0 ? `dist/index.js does not export ${absent.join(", ")}` : undefined;
  } catch (error) {
    return `dist/index.js cannot be loaded: ${error instanceof Error ? error.message : error}`;
  }
}

export function oracleVersion(): string {
  return (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string }).version;
}
