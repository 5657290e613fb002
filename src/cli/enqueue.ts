import { type Command, Option } from "commander";
import { OracleError } from "../core/errors.js";
import type { Oracle } from "../oracle.js";
import type { Enqueued, NewJob } from "../store/new-job.js";
import { requireJob } from "../store/read.js";
import { type EnqueueOptions, nameLengths, submissionBounds, toNewJob } from "../submit.js";
import { action, type Call, examples } from "./command.js";
import { enqueueBulk } from "./enqueue-bulk.js";
import { showWhenFinished } from "./finish.js";
import { payloadLimits, readInput, requireFile } from "./input.js";
import { jobJson } from "./job-json.js";
import { jobLine } from "./job-text.js";
import { CLIENT_PATIENCE_MS, untilReachable } from "./open.js";
import type { Output } from "./output.js";
import {
  parseMoment,
  parseOneOf,
  parseSeconds,
  parseText,
  parseWholeNumber,
  parseWholeSeconds,
} from "./parse.js";

interface EnqueueFlags extends Omit<EnqueueOptions, "timeoutSeconds" | "version" | "replayOf"> {
  input?: string;
  bulk?: string;
  timeout?: number;
  /** True: without limit. */
  wait?: number | true;
}

const bulkHelp = `

A line of a bulk file is {"type"?, "input", "key"?, "queue"?, "priority"?, "run_after"?, "deadline"?,
"max_attempts"?, "timeout_seconds"?, "dedupe"?, "tenant"?, "concurrency_key"?, "concurrency_limit"?}; what it leaves
out, the flags say.`;

export function register(program: Command): void {
  program
    .command("enqueue")
    .description("submit one job, or many with --bulk")
    .argument("[type]", "the job type; with --bulk the type of lines that name none")
    .option("--input <json>", "the input: JSON, @FILE, or - for standard input")
    .option("--bulk <file>", "one job per line of a .ndjson file, or - for standard input")
    .option(
      "--key <key>",
      "idempotency key: the same key and input is the same job",
      parseText("--key", nameLengths.key),
    )
    .option("--queue <queue>", "default: default", parseText("--queue", nameLengths.queue))
    .option(
      "--priority <n>",
      "higher runs first; default: 0",
      parseWholeNumber("--priority", ...submissionBounds.priority),
    )
    .option(
      "--run-after <when>",
      "not before a time (2030-01-31T08:00:00Z) or delay (+30s)",
      parseMoment("--run-after"),
    )
    .option(
      "--deadline <when>",
      "fails if not finished by a time or within a delay (+1h)",
      parseMoment("--deadline"),
    )
    .option("--tenant <tenant>", "default: default", parseText("--tenant", nameLengths.tenant))
    .option(
      "--max-attempts <n>",
      "tries before it fails for good; default: 3",
      parseWholeNumber("--max-attempts", ...submissionBounds.maxAttempts),
    )
    .option(
      "--timeout <seconds>",
      "how long one attempt may run; default: the job type's",
      parseWholeSeconds("--timeout", ...submissionBounds.timeoutSeconds),
    )
    .option(
      "--dedupe <kind>",
      "join a job with the same type and input: active (unfinished) or result (succeeded)",
      parseOneOf("--dedupe", ["active", "result"]),
    )
    .option(
      "--concurrency-key <key>",
      "jobs of the tenant with the same key run at most --concurrency-limit at a time",
      parseText("--concurrency-key", nameLengths.concurrencyKey),
    )
    .option(
      "--concurrency-limit <n>",
      "default: 1 where there is a key",
      parseWholeNumber("--concurrency-limit", ...submissionBounds.concurrencyLimit),
    )
    .addOption(
      new Option("--wait [seconds]", "wait for its end and show the result").argParser(
        parseSeconds("--wait", 0, 31_536_000),
      ),
    )
    .addHelpText(
      "after",
      examples(
        `oracle-worker enqueue summarize_text --input '{"text": "…"}' --key doc-42 --wait`,
        "oracle-worker enqueue summarize_text --input @document.json --queue bulk --run-after +10m",
        "oracle-worker enqueue summarize_text --bulk inputs.ndjson",
      ) + bulkHelp,
    )
    .action(action<EnqueueFlags>(enqueueCommand));
}

async function enqueueCommand(call: Call<EnqueueFlags>, type: string | undefined): Promise<void> {
  const { flags, out, settings } = call;
  if (flags.bulk !== undefined) {
    refuseTogether(flags, "bulk", ["input", "key", "wait"]);
    if (flags.bulk !== "-") await requireFile("--bulk", flags.bulk);
    const source = { path: flags.bulk, type, defaults: toOptions(flags) };
    const summary = await call.withOracle((oracle) => enqueueBulk(oracle, source));
    return out.show(summary, () => `${summary.enqueued} enqueued, ${summary.existing} were there already`);
  }
  if (type === undefined)
    throw missing("type", "The job type is missing: oracle-worker enqueue TYPE --input JSON.");
  if (flags.input === undefined)
    throw missing("--input", "--input is missing: give JSON, @FILE, or - for standard input.");
  // Before the database is opened: a wrong input must not cost the start of a server.
  const job = toNewJob(
    type,
    await readInput(flags.input, settings),
    toOptions(flags),
    payloadLimits(settings),
  );
  await call.withOracle(async (oracle) => {
    // The job's id is made here, so trying again after a lost reply cannot store it twice.
    const enqueued = await untilReachable(CLIENT_PATIENCE_MS, () => oracle.submitter.one(job));
    await showEnqueued(oracle, out, flags.wait, job, enqueued);
  });
}

async function showEnqueued(
  oracle: Oracle,
  out: Output,
  wait: number | true | undefined,
  asked: NewJob,
  { jobId, joined }: Enqueued,
): Promise<void> {
  const created = jobId === asked.jobId;
  const extra = { created, joined: created ? null : joined };
  if (wait !== undefined) {
    const timeoutSeconds = wait === true ? undefined : wait;
    return showWhenFinished(oracle, out, jobId, { timeoutSeconds, extra });
  }
  const job = await requireJob(oracle.db, jobId);
  await out.show({ ...jobJson(job), ...extra }, () => {
    return created ? `${jobLine(job)}` : `${jobLine(job)}, there already by the same ${joinedBy(joined)}`;
  });
}

function joinedBy(joined: Enqueued["joined"]): string {
  return joined === "key" ? "key" : "type and input";
}

function toOptions(flags: EnqueueFlags): EnqueueOptions {
  const given = {
    key: flags.key,
    queue: flags.queue,
    priority: flags.priority,
    runAfter: flags.runAfter,
    deadline: flags.deadline,
    tenant: flags.tenant,
    maxAttempts: flags.maxAttempts,
    timeoutSeconds: flags.timeout,
    dedupe: flags.dedupe,
    concurrencyKey: flags.concurrencyKey,
    concurrencyLimit: flags.concurrencyLimit,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function refuseTogether(flags: EnqueueFlags, one: keyof EnqueueFlags, others: (keyof EnqueueFlags)[]): void {
  const other = others.find((name) => flags[name] !== undefined);
  if (other) throw missing(`--${other}`, `--${other} and --${one} cannot be given together.`);
}

function missing(field: string, message: string): OracleError {
  return new OracleError("INVALID_ARGUMENT", message, { field });
}
