import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import { answer, strayAnswer } from "../isolated.js";
import type { HandlerMessage, RequestEnvelope, WorkerMessage } from "../protocol.js";
import { RemoteContext } from "../remote-context.js";
import { MODULE_OUTPUT_FD } from "./child.js";
import { toLines } from "./parts.js";

// The other side of a module that runs in a process of its own: reads requests from stdin, runs its handlers, answers
// on a descriptor that nothing else writes to. What handlers print goes to their attempt's log.

interface Attempt {
  request: RequestEnvelope;
  remote: RemoteContext;
}

const exit: typeof process.exit = process.exit;
const module = process.argv[2] ?? "";
const isWarm = process.env.ORACLE_WORKER_WARM === "1";

/** Whose code is running, also in what it left behind. */
const owners = new AsyncLocalStorage<Attempt>();
let current: Attempt | undefined;
/** Something of an attempt that had ended broke; nobody knows what else it does. */
let broken = false;

async function serve(request: RequestEnvelope): Promise<void> {
  const send = (message: HandlerMessage) => {
    // What outlives its attempt must not speak for the next one.
    if (current === attempt) for (const line of toLines(JSON.stringify(message))) say(line);
  };
  const attempt: Attempt = { request, remote: new RemoteContext(request, send) };
  current = attempt;
  const response = await owners.run(attempt, () => answer(module, request, attempt.remote));
  current = undefined;
  say(response);
  if (!isWarm) exit(0);
  if (broken) leave();
}

/** Writes at once: what was said is heard even if this process ends in the next instruction. */
function say(line: string): void {
  try {
    for (let bytes = Buffer.from(`${line}\n`); bytes.length > 0; ) {
      bytes = bytes.subarray(writeSync(MODULE_OUTPUT_FD, bytes));
    }
  } catch {
    exit(1); // The worker is gone.
  }
}

function leave(): never {
  say('{"leaving":true}');
  exit(1);
}

/** The fault of the attempt that runs is its answer; of one that has ended, or of nobody, it disturbs no other. */
process.on("uncaughtException", (error) => {
  const owner = owners.getStore();
  if (current && owner === current) {
    say(strayAnswer(current.request, error));
    leave();
  }
  console.error("An error after its attempt had ended:", error);
  if (current) broken = true;
  else leave();
});

process.exit = (code) => {
  if (!current) leave();
  if (owners.getStore() === current) exit(code);
  throw new Error("process.exit() after its attempt had ended");
};

function hear(line: string): void {
  const message = JSON.parse(line) as RequestEnvelope | WorkerMessage;
  if ("v" in message) void serve(message);
  else if (!("cancel" in message) || message.cancel.attempt_id === current?.request.attempt_id) {
    current?.remote.hear(message);
  }
}

let unfinished = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk: string) => {
  const lines = (unfinished + chunk).split("\n");
  unfinished = lines.pop() ?? "";
  for (const line of lines) hear(line);
});
// Nobody waits for the answer of an attempt that still runs.
process.stdin.on("end", () => exit(current ? 1 : 0));
