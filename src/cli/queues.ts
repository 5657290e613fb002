import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import { parseDuration } from "../core/settings.js";
import { checkQueueName, type Queue } from "../store/queues.js";
import { action, type Call, examples } from "./command.js";
import { wrongValue } from "./errors.js";
import { table } from "./table.js";
import { span } from "./time.js";

export function register(program: Command): void {
  const queues = program.command("queues").description("look at queues, pause and resume them");
  queues
    .command("list")
    .description("queues with jobs or settings of their own")
    .addHelpText("after", examples("oracle-worker queues list"))
    .action(action(listCommand));
  queues
    .command("pause")
    .description("start no more of a queue's jobs; running ones go on")
    .argument("<queue>", "the queue's name")
    .addHelpText("after", examples("oracle-worker queues pause bulk"))
    .action(action((call, queue: string) => pauseCommand(call, queue, true)));
  queues
    .command("resume")
    .description("start a paused queue's jobs again")
    .argument("<queue>", "the queue's name")
    .addHelpText("after", examples("oracle-worker queues resume bulk"))
    .action(action((call, queue: string) => pauseCommand(call, queue, false)));
  queues
    .command("set")
    .description("change how a queue orders its jobs")
    .argument("<queue>", "the queue's name")
    .option(
      "--ageing <seconds>",
      "one point of priority is worth this much waiting; off: strict priority",
      ageing,
    )
    .addHelpText(
      "after",
      examples("oracle-worker queues set bulk --ageing 60", "oracle-worker queues set bulk --ageing off"),
    )
    .action(action(setCommand));
}

async function listCommand({ out, withOracle }: Call<unknown>): Promise<void> {
  const items = await withOracle((oracle) => oracle.queues());
  await out.show({ items: items.map(queueJson), next: null }, () =>
    items.length === 0 ? "No queues." : queueTable(items),
  );
}

async function pauseCommand(
  { out, withOracle }: Call<unknown>,
  queue: string,
  paused: boolean,
): Promise<void> {
  checkQueueName(queue);
  await withOracle((oracle) => (paused ? oracle.pauseQueue(queue) : oracle.resumeQueue(queue)));
  await out.show({ queue, paused }, () => `Queue ${queue} is ${paused ? "paused" : "running"}`);
}

async function setCommand(call: Call<{ ageing?: number | "off" }>, queue: string): Promise<void> {
  const { flags, out, withOracle } = call;
  if (flags.ageing === undefined) {
    throw new OracleError("INVALID_ARGUMENT", "--ageing is missing: give seconds, or off.", {
      field: "--ageing",
    });
  }
  checkQueueName(queue);
  const seconds = flags.ageing === "off" ? null : flags.ageing;
  await withOracle((oracle) => oracle.setQueueAgeing(queue, seconds));
  await out.show({ queue, ageing_seconds: seconds }, () =>
    seconds === null
      ? `Queue ${queue} runs by strict priority`
      : `Queue ${queue}: one point of priority is worth ${span(seconds)} of waiting`,
  );
}

function ageing(given: string): number | "off" {
  if (given === "off") return given;
  const seconds = parseDuration(given) ?? Number.NaN;
  if (seconds > 0 && seconds <= 86_400) return seconds;
  throw wrongValue("--ageing", given, "seconds from above 0 to 86400, such as 60 or 5m, or off");
}

function queueJson({ queue, paused, ageingSeconds, ready, running }: Queue) {
  return { queue, paused, ageing_seconds: ageingSeconds, ready, running };
}

function queueTable(queues: readonly Queue[]): string {
  return table(queues, [
    { title: "QUEUE", value: ({ queue }) => queue },
    { title: "READY", value: ({ ready }) => ready, align: "right" },
    { title: "RUNNING", value: ({ running }) => running, align: "right" },
    { title: "PAUSED", value: ({ paused }) => (paused ? "paused" : null), colour: () => "yellow" },
    { title: "AGEING", value: ({ ageingSeconds }) => ageingSeconds && span(ageingSeconds) },
  ]);
}
