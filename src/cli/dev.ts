import { watch } from "node:fs";
import type { Command } from "commander";
import { createLogger } from "../observe/log.js";
import type { Oracle } from "../oracle.js";
import { withOracle } from "./open.js";
import { onSignals, supervise } from "./supervise.js";

interface DevFlags {
  handlers?: string;
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
    .description("everything at once for development: database, worker, a sample job")
    .option("--handlers <path>", "a module, or a folder of modules; reloaded when it changes")
    .addHelpText("after", "\nExample:\n  oracle-worker dev --handlers ./jobs\n")
    .action((_flags: DevFlags, command: Command) => dev(command));
}

async function dev(command: Command): Promise<void> {
  const { handlers } = command.optsWithGlobals<DevFlags>();
  const startedAt = performance.now();
  await withOracle(command, { migrate: true, patienceMs: 5_000 }, async (oracle) => {
    say(`✓ database ready${oracle.settings.DATABASE_URL ? "" : " (embedded, data in .oracle-worker/)"}`);
    let greeted = false;
    const supervisor = supervise({
      oracle,
      logger: createLogger(oracle.settings.LOG_LEVEL),
      processes: 1,
      handlers,
      onReady: (workerId) => {
        say(`✓ worker ${workerId} ready`);
        if (!greeted) void runSample(oracle, startedAt);
        greeted = true;
      },
    });
    const stopWatching = handlers ? watchForChanges(handlers, () => supervisor.reload()) : () => {};
    const off = onSignals(() => {
      stopWatching();
      say("stopping: running jobs finish first (again: abort them)");
      supervisor.stop();
    });
    process.exitCode = await supervisor.run();
    off();
  });
}

async function runSample(oracle: Oracle, startedAt: number): Promise<void> {
  try {
    const job = await oracle.enqueue("summarize_text", sample);
    const result = await job.result({ timeoutSeconds: 60 });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    say(`✓ sample job ${job.id} SUCCEEDED, ${seconds} s after the start:`);
    say(JSON.stringify(result, null, 2));
    say(`
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
  const watcher = watch(path, { recursive: true }, () => {
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
