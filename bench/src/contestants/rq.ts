import { execFileSync, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Contestant, Place, PythonSession } from "../types.ts";

/** Debian's own interpreter: python3-rq installs there, whatever else is first on the PATH. */
const PYTHON = "/usr/bin/python3";
const TASKS = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "python");

export const rq: Contestant = {
  name: "rq",
  side: "peer",
  store: "redis",
  version: () => rqVersion() ?? "?",
  settings: "one `rq worker --burst`, default Worker class: a fork per job; Redis without persistence",
  keeps: "not durable; results kept 500 s; no attempt records",
  recovery: {
    documented:
      "a job of a dead worker goes to the failed registry; it runs again only with retries configured",
    documentedSeconds: null,
    measure: false,
  },
  unavailable: async () =>
    rqVersion() ? undefined : "RQ is not installed (Debian: apt-get install python3-rq)",
  openPython: (place) => open(place, "rq.worker.Worker"),
};

/** Its fastest form: no fork, so no isolation and no timeout by signal; the docs call it a worker for tests. */
export const rqSimple: Contestant = {
  ...rq,
  name: "rq-simple",
  fullOnly: "all",
  settings:
    "one `rq worker --burst -w rq.worker.SimpleWorker`: no fork, runs in the worker; Redis without persistence",
  openPython: (place) => open(place, "rq.worker.SimpleWorker"),
};

function rqVersion(): string | undefined {
  try {
    const ask = "import rq; print(rq.VERSION)";
    return execFileSync(PYTHON, ["-c", ask], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return undefined;
  }
}

async function open(place: Place, workerClass: string): Promise<PythonSession> {
  const env = { ...process.env, PYTHONPATH: TASKS };
  return {
    install: async () => undefined,
    run: async (jobs) => {
      execFileSync(PYTHON, ["-m", "bench_enqueue", place.redisUrl, String(jobs)], { env, stdio: "ignore" });
      const began = performance.now();
      const flags = [
        "-m",
        "rq.cli",
        "worker",
        "--burst",
        "--quiet",
        "-u",
        place.redisUrl,
        "-w",
        workerClass,
        "bench",
      ];
      const worker = spawn(PYTHON, flags, { env, stdio: "ignore" });
      const code = await new Promise<number | null>((resolve) => worker.once("exit", resolve));
      const seconds = (performance.now() - began) / 1000;
      if (code !== 0) throw new Error(`rq worker ended with ${code}`);
      execFileSync(PYTHON, ["-m", "bench_enqueue", "--check", place.redisUrl, String(jobs)], {
        env,
        stdio: "inherit",
      });
      return seconds;
    },
    close: async () => undefined,
  };
}
