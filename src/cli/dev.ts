import { watch } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { DEFAULT_PORT } from "../http/listen.js";
import { createLogger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import { withOracle } from "./open.js";
import { parseWholeNumber } from "./parse.js";
import { onSignals, supervise } from "./supervise.js";

interface DevFlags {
  handlers?: string;
  port?: number;
}

const sample = {
  text: `Oracle Worker keeps every job in PostgreSQL and gives it to one worker at a time. A worker holds a lease,
    renews it while the job runs, and loses it when the process dies. Whoever takes over gets a new attempt, and
    only the attempt that holds the lease can store the result. So a job has one result, whatever crashes, and the
    attempts before it stay on record.`,
  max_bullets: 2,
};

export function register(program: Command): void {
  program
    .command("dev")
    .description("everything at once for development: database, worker, API, dashboard, a sample job")
    .option("--handlers <path>", "a module, a manifest or a folder of them; reloaded when it changes")
    .option(
      "--port <n>",
      `of the API and the dashboard; default: ${DEFAULT_PORT}`,
      parseWholeNumber("--port", 0, 65_535),
    )
    .addHelpText("after", "\nExample:\n  oracle-worker dev --handlers ./jobs\n")
    .action((_flags: DevFlags, command: Command) => dev(command));
}

async function dev(command: Command): Promise<void> {
  const { handlers, port } = command.optsWithGlobals<DevFlags>();
  const startedAt = performance.now();
  await withOracle(command, { migrate: true, patienceMs: 5_000 }, async (oracle) => {
    say(`✓ database ready${oracle.settings.DATABASE_URL ? "" : " (embedded, data in .oracle-worker/)"}`);
    const logger = createLogger(oracle.settings.LOG_LEVEL);
    let greeted = false;
    const supervisor = supervise({
      oracle,
      logger,
      processes: 1,
      handlers,
      demo: true,
      onReady: (workerId) => {
        say(`✓ worker ${workerId} ready`);
        if (!greeted) void runSample(oracle, startedAt, http.loginUrl);
        greeted = true;
      },
    });
    const { startDevHttp } = await import("./dev-http.js"); // see serve
    const http = await startDevHttp({ oracle, logger, port, supervisor });
    if (http.moved) say(`port ${DEFAULT_PORT} is taken, so another one it is`);
    say(`✓ API and dashboard at ${http.url}`);
    const stopWatching = handlers ? watchForChanges(handlers, () => supervisor.reload()) : () => {};
    const off = onSignals(() => {
      stopWatching();
      say("stopping: running jobs finish first (again: abort them)");
      supervisor.stop();
    });
    process.exitCode = await supervisor.run();
    await http.close();
    off();
  });
}

async function runSample(oracle: Oracle, startedAt: number, loginUrl: string): Promise<void> {
  try {
    const job = await oracle.enqueue("summarize_text", sample);
    const result = await job.result({ timeoutSeconds: 60 });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    say(`✓ sample job ${job.id} SUCCEEDED, ${seconds} s after the start:`);
    say(JSON.stringify(result, null, 2));
    say(`
Open the dashboard (this address logs you in, once):
  ${loginUrl}
Try, in another terminal:
  npx oracle-worker enqueue summarize_text --input '{"text": "Hello from my first job."}' --wait
  npx oracle-worker jobs list
  npx oracle-worker demo crash
Ctrl-C stops everything.`);
  } catch (error) {
    say(`the sample job failed: ${error instanceof Error ? error.message : error}`);
  }
}

/** Editors write a file several times in a row; one reload is enough. */
function watchForChanges(path: string, reload: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  // The programs of a manifest lie beside it.
  const place = path.endsWith(".json") ? dirname(path) : path;
  const watcher = watch(place, { recursive: true }, (_change, name) => {
    if (name?.includes("__pycache__")) return; // written by a handler's start, not by a person
    clearTimeout(timer);
    timer = setTimeout(() => {
      say("handlers changed: reloading");
      reload();
    }, 200);
  });
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
