import type { Command } from "commander";
import { pythonFolder } from "../handlers/environment.js";
import { examples } from "./command.js";
import { createOutput } from "./output.js";

export function register(program: Command): void {
  program
    .command("python-path")
    .description("the folder of oracle_worker.py, for PYTHONPATH")
    .addHelpText("after", examples("export PYTHONPATH=$(oracle-worker python-path)"))
    .action(async (_flags: unknown, command: Command) => {
      const { json = false } = command.optsWithGlobals<{ json?: boolean }>();
      await createOutput(json).show({ path: pythonFolder }, () => pythonFolder);
    });
}
