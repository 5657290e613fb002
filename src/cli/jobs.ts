import type { Command } from "commander";
import { action, examples } from "./command.js";
import { artifactCommand } from "./jobs-artifact.js";
import { cancelCommand, replayCommand, retryCommand } from "./jobs-control.js";
import { listCommand, resultCommand, showCommand } from "./jobs-read.js";
import { tailCommand, waitCommand } from "./jobs-watch.js";
import { parseSeconds, parseState, parseText, parseWholeNumber } from "./parse.js";

const ID = "0198c5a0-7b6e-7c3d-9f10-2a4b6c8d0e1f";

export function register(program: Command): void {
  const jobs = program.command("jobs").description("look at jobs, wait for them, steer them");
  addReading(jobs);
  addWatching(jobs);
  addSteering(jobs);
}

function addReading(jobs: Command): void {
  jobs
    .command("list")
    .description("jobs, newest first")
    .option("--state <state>", "only jobs in this state", parseState("--state"))
    .option("--type <type>", "only this job type", parseText("--type", 200))
    .option("--queue <queue>", "only this queue", parseText("--queue", 200))
    .option("--tenant <tenant>", "only this tenant", parseText("--tenant", 200))
    .option("--spec-hash <hash>", "only jobs with the same type and input", parseText("--spec-hash", 200))
    .option("--limit <n>", "how many; default: 50", parseWholeNumber("--limit", 1, 1000))
    .option("--after <cursor>", "go on after the page whose `next` this is")
    .addHelpText("after", examples("oracle-worker jobs list --state FAILED_TERMINAL --limit 20"))
    .action(action(listCommand));
  jobs
    .command("show")
    .description("one job with its input, attempts, steps, effects, last log lines and artifacts")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples(`oracle-worker jobs show ${ID}`))
    .action(action(showCommand));
  jobs
    .command("result")
    .description("a succeeded job's result, as JSON")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples(`oracle-worker jobs result ${ID} --json > result.json`))
    .action(action(resultCommand));
  jobs
    .command("artifact")
    .description("one of a job's artifacts, as its bytes")
    .argument("<id>", "the job's id")
    .argument("<name>", "the artifact's name, SHA-256 digest or id; of several of one name the latest")
    .option("--output <file>", "a file, or a folder to put it in; default: stdout")
    .addHelpText("after", examples(`oracle-worker jobs artifact ${ID} report.pdf --output report.pdf`))
    .action(action(artifactCommand));
}

function addWatching(jobs: Command): void {
  jobs
    .command("wait")
    .description("wait for a job's end and show its result")
    .argument("<id>", "the job's id")
    .option(
      "--timeout <seconds>",
      "give up after this long; default: never",
      parseSeconds("--timeout", 0, 31_536_000),
    )
    .addHelpText("after", examples(`oracle-worker jobs wait ${ID} --timeout 5m`))
    .action(action(waitCommand));
  jobs
    .command("tail")
    .description("follow a job: each change, log line and progress, until it ends")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples(`oracle-worker jobs tail ${ID}`))
    .action(action(tailCommand));
}

function addSteering(jobs: Command): void {
  jobs
    .command("cancel")
    .description("cancel a waiting job, or ask a running one to stop")
    .argument("<id>", "the job's id")
    .addHelpText("after", examples(`oracle-worker jobs cancel ${ID}`))
    .action(action(cancelCommand));
  jobs
    .command("retry")
    .description("put a failed or cancelled job back in its queue")
    .argument("[id]", "the job's id")
    .option("--all", "every job in --state")
    .option("--state <state>", "with --all; default: FAILED_TERMINAL", parseState("--state"))
    .option("--tenant <tenant>", "with --all: only this tenant", parseText("--tenant", 200))
    .addHelpText(
      "after",
      examples(`oracle-worker jobs retry ${ID}`, "oracle-worker jobs retry --all --state CANCELLED"),
    )
    .action(action(retryCommand));
  jobs
    .command("replay")
    .description("a new job like an old one, with the same input or another")
    .argument("<id>", "the old job's id")
    .option("--input <json>", "another input: JSON, @FILE, or - for standard input")
    .option(
      "--from <step>",
      "reuse what the old job has before this step, and run on from it",
      parseText("--from", 200),
    )
    .addHelpText(
      "after",
      examples(
        `oracle-worker jobs replay ${ID} --input '{"text": "…"}'`,
        `oracle-worker jobs replay ${ID} --from summarize`,
      ),
    )
    .action(action(replayCommand));
}
