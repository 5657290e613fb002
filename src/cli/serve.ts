import { once } from "node:events";
import type { Command } from "commander";
import { DEFAULT_HOST, DEFAULT_PORT } from "../http/listen.js";
import { createLogger } from "../observe/log.js";
import { examples } from "./command.js";
import { withOracle } from "./open.js";
import { parseText, parseWholeNumber } from "./parse.js";

interface ServeFlags {
  host: string;
  port: number;
}

export function register(program: Command): void {
  program
    .command("serve")
    .description("answer the HTTP API and show the dashboard until told to stop")
    .option(
      "--host <address>",
      "where to listen; beyond this machine a token must exist",
      parseText("--host", 255),
      DEFAULT_HOST,
    )
    .option("--port <n>", "the port; 0 takes a free one", parseWholeNumber("--port", 0, 65_535), DEFAULT_PORT)
    .addHelpText("after", examples("oracle-worker serve", "oracle-worker serve --host 0.0.0.0 --port 8080"))
    .action((_flags: ServeFlags, command: Command) => serve(command));
}

async function serve(command: Command): Promise<void> {
  const { host, port } = command.optsWithGlobals<ServeFlags>();
  await withOracle(command, { patienceMs: 30_000 }, async (oracle) => {
    const logger = createLogger(oracle.settings.LOG_LEVEL);
    // Loaded where it is needed: every other command starts without it, in half the time.
    const { startHttp } = await import("./http.js");
    const http = await startHttp({ oracle, logger, address: { host, port } });
    process.stdout.write(`✓ API and dashboard at ${http.url}\n`);
    const told = new AbortController();
    await Promise.race([once(process, "SIGTERM", told), once(process, "SIGINT", told)]);
    told.abort();
    await http.close();
  });
}
