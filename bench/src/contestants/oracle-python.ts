import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { Contestant, PythonSession } from "../types.ts";
import { anything, loadOracle } from "./oracle-api.ts";
import { NOTHING_LEFT, oracleWorker } from "./oracle-worker.ts";
import { ask, pollUntil } from "./support.ts";

/** The same interpreter as RQ's. */
const PYTHON = "/usr/bin/python3";
const HANDLER = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "python", "bench_handler.py");

/** Where the trivial job runs. */
const places = {
  warm: { concurrency: 500, executable: [PYTHON, HANDLER], warm: 2 },
  "one-shot": { concurrency: 4, executable: [PYTHON, HANDLER] },
  inline: { concurrency: 1000, run: ({ input }: { input: unknown }) => ({ ok: true, ...(input as object) }) },
};

export const oraclePython: Contestant[] = [
  contestant(
    "warm",
    "two warm Python processes (warm: 2), concurrency 500: the next jobs are claimed meanwhile",
  ),
  { ...contestant("one-shot", "a Python process per job, four at a time"), jobsShare: 0.05, fullOnly: "all" },
  contestant("inline", "the same job as a function in the worker, for comparison: no Python"),
];

function contestant(place: keyof typeof places, settings: string): Contestant {
  const { side, store, version, keeps, unavailable } = oracleWorker;
  return {
    name: `oracle-worker-${place}`,
    side,
    store,
    version,
    keeps,
    settings: `one worker, restricted role; ${settings}`,
    ...(unavailable ? { unavailable } : {}),
    openPython: ({ postgresUrl }) => open(postgresUrl, place),
  };
}

async function open(databaseUrl: string, place: keyof typeof places): Promise<PythonSession> {
  const api = await loadOracle();
  const oracle = await api.connect({ databaseUrl });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const { concurrency, ...runs } = places[place];
  const job = api.defineJob({ type: "bench", input: anything, output: anything, ...runs });
  return {
    install: async () => void (await oracle.migrate()),
    run: async (jobs) => {
      await oracle.enqueueMany(
        job,
        Array.from({ length: jobs }, (_, n) => ({ n })),
      );
      const began = performance.now();
      const worker = await api.createWorker(oracle, { jobs: [job], concurrency });
      await pollUntil(() => ask(pool, NOTHING_LEFT));
      const seconds = (performance.now() - began) / 1000;
      await worker.stop();
      return seconds;
    },
    close: async () => {
      await oracle.close();
      await pool.end();
    },
  };
}
