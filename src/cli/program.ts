import { Command, CommanderError } from "commander";
import { rememberEnvironment } from "../core/secrets.js";
import { version } from "../version.js";
import * as approve from "./approve.js";
import { examples } from "./command.js";
import * as demo from "./demo.js";
import * as dev from "./dev.js";
import * as doctor from "./doctor.js";
import * as effects from "./effects.js";
import * as enqueue from "./enqueue.js";
import { exitCodeOf, printError } from "./errors.js";
import * as evolve from "./evolve.js";
import * as jobs from "./jobs.js";
import * as migrate from "./migrate.js";
import { parseDatabaseUrl } from "./parse.js";
import * as prune from "./prune.js";
import * as pythonPath from "./python-path.js";
import * as queues from "./queues.js";
import * as serve from "./serve.js";
import * as tenants from "./tenants.js";
import * as verify from "./verify.js";
import * as work from "./work.js";

/** In the order of the help. */
const commands = [
  dev,
  work,
  serve,
  migrate,
  enqueue,
  jobs,
  effects,
  approve,
  queues,
  tenants,
  verify,
  prune,
  doctor,
  evolve,
  pythonPath,
  demo,
];

const notes = `
Database: --database-url, or DATABASE_URL; without either an embedded PostgreSQL under .oracle-worker/.
Settings: oracle-worker.config.json or .ts, overridden by the environment, overridden by flags.
Exit codes: 0 done, 1 the job or check failed, 2 wrong usage or settings, 3 refused (conflict, precondition).
`;

/** Runs one command line; returns the exit code. */
export async function runCli(args: string[]): Promise<number> {
  const json = wantsJson(args);
  rememberEnvironment(process.env);
  try {
    await createProgram(json).parseAsync(args, { from: "user" });
    // A command that ran to its end may still have something bad to report.
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Help and version were asked for and have been printed.
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    printError(withoutCommand(error, args), json);
    return exitCodeOf(error);
  }
}

function createProgram(json: boolean): Command {
  const program = new Command("oracle-worker")
    .description("Runs jobs from PostgreSQL so that each yields one result, whatever crashes.")
    .version(version, "--version", "print the version")
    .option("--json", "answers as JSON, one document per line")
    .option("--database-url <url>", "PostgreSQL 13 to 18", parseDatabaseUrl)
    .helpOption("-h, --help", "show this help")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      "after",
      notes + examples(`oracle-worker enqueue summarize_text --input '{"text": "…"}' --wait`),
    )
    // Errors are thrown and printed in our own shape; the rest is the help of a call without a command.
    .configureOutput({ outputError: () => {}, writeErr: (text) => json || process.stderr.write(text) })
    .exitOverride();
  // Commands copy the settings above when they are added.
  for (const command of commands) command.register(program);
  return program;
}

/** `oracle-worker` or `oracle-worker jobs` alone: commander would print its help and no error. */
function withoutCommand(error: unknown, args: string[]): unknown {
  if (!(error instanceof CommanderError) || error.code !== "commander.help") return error;
  const given = ["oracle-worker", ...args.filter((arg) => !arg.startsWith("-"))].join(" ");
  return new CommanderError(1, error.code, `no command given; see \`${given} --help\``);
}

/** Read from the arguments themselves: an error may come before commander has read them. */
function wantsJson(args: string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end === -1 ? args.length : end).includes("--json");
}
