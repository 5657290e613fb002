#!/usr/bin/env node
import { surviveClosedPipes } from "./output.js";
import { runCli } from "./program.js";

surviveClosedPipes();
const code = await runCli(process.argv.slice(2));
// What is still in the pipe gets out; what still hangs on a dead connection does not hold us up.
process.stdout.write("", () => process.exit(code));
