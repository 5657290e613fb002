import type { Command } from "commander";
import { createLogger } from "../observe/log.js";
import { nameLengths } from "../submit.js";
import { withOracle } from "./open.js";
import { parseText, parseWholeNumber } from "./parse.js";
import { onSignals, supervise } from "./supervise.js";

interface WorkFlags {
  handlers?: string;
  queues?: string;
  concurrency?: string;
  tenant?: string;
  processes?: number;
  drain?: boolean;
}

export function register(program: Command): void {
  program
    .command("work")
    .description("run jobs until told to stop")
    .option(
      "--handlers <path>",
      "modules that export jobs made with defineJob, manifests of executables: a file or a folder",
    )
    .option("--queues <names>", "queues to serve, separated by commas (QUEUES)")
    .option("--tenant <tenant>", "serve this tenant only", parseText("--tenant", nameLengths.tenant))
    .option("--concurrency <n>", "jobs at once in each process (CONCURRENCY)")
    .option("--processes <n>", "worker processes", parseWholeNumber("--processes", 1, 256), 1)
    .option("--drain", "stop when the queues are empty")
    .addHelpText(
      "after",
      "\nExample:\n  oracle-worker work --handlers ./jobs --concurrency 50 --processes 2\n",
    )
    .action((_flags: WorkFlags, command: Command) => work(command));
}

async function work(command: Command): Promise<void> {
  const flags = command.optsWithGlobals<WorkFlags>();
  const settings = { QUEUES: flags.queues, CONCURRENCY: flags.concurrency };
  await withOracle(command, { settings, patienceMs: 30_000 }, async (oracle) => {
    const supervisor = supervise({
      oracle,
      logger: createLogger(oracle.settings.LOG_LEVEL),
      processes: flags.processes ?? 1,
      handlers: flags.handlers,
      tenant: flags.tenant,
      drain: flags.drain ?? false,
    });
    const off = onSignals(() => supervisor.stop());
    const { serveHealth } = await import("./worker-health.js"); // see serve
    const stopHealth = await serveHealth(supervisor, oracle.db, oracle.settings);
    process.exitCode = await supervisor.run();
    await stopHealth();
    off();
  });
}
