import type { JsonValue } from "../../core/json.js";
import { fromErrorEnvelope, type ResponseEnvelope } from "../protocol.js";
import { AttemptLog } from "./attempt-log.js";
import { BoundedBytes } from "./bytes.js";
import { LINGER_MS, STDOUT_BYTES } from "./caps.js";
import type { Ending } from "./child.js";
import { describe, endedWithoutAnswer, ranOutOfCpu } from "./ending.js";
import { breach, checkAttempt, readResponse, tooMuchOutput } from "./envelope.js";
import type { Launcher } from "./launcher.js";
import { onAbort, type Task } from "./task.js";

/** What it needs of a task. */
export interface OneShotTask extends Pick<Task, "definition" | "context" | "request"> {
  lease: Pick<Task["lease"], "attemptId">;
}

/** One child for one attempt: a document in, a document out, and the exit code must agree with it. */
export async function runOneShot(task: OneShotTask, launcher: Launcher): Promise<JsonValue> {
  const { definition, context, request } = task;
  const output = new BoundedBytes(STDOUT_BYTES);
  const log = new AttemptLog();
  let lingering: NodeJS.Timeout | undefined;
  const child = launcher.start(definition, {
    output: (chunk) => {
      if (!output.append(chunk)) child.fail(tooMuchOutput("a warm child can keep large data as an artifact"));
    },
    outputEnd: () => {
      lingering = setTimeout(() => child.fail(breach("it closed stdout and did not end")), LINGER_MS);
    },
    log: (chunk) => log.append(chunk),
  });
  const unwatch = launcher.watchMemory(child, definition);
  const deafen = onAbort(context.signal, () => child.stop());
  child.closeInput(request);
  const ending = await child.ended;
  clearTimeout(lingering);
  unwatch();
  deafen();
  await log.keep(context);
  if (child.failure) throw child.failure;
  return judge(task, ending, output.take(), log);
}

function judge(task: OneShotTask, ending: Ending, output: Buffer, log: AttemptLog): JsonValue {
  const { definition, context, lease } = task;
  const succeeded = ending.code === 0;
  const { response, fault } = readAnswer(output);
  if (fault && succeeded) throw fault;
  if (response) checkAttempt(response, lease.attemptId);
  if (response?.usage) context.usage(response.usage);
  if (response?.ok === false) throw fromErrorEnvelope(response.error);
  if (response && succeeded) return response.result;
  if (context.signal.aborted) throw context.signal.reason;
  if (!response || ranOutOfCpu(definition, ending)) {
    throw endedWithoutAnswer(definition, ending, log, fault);
  }
  throw breach(`it answered with success, but ${describe(ending)}`);
}

function readAnswer(output: Buffer): { response?: ResponseEnvelope; fault?: Error } {
  if (output.toString("latin1").trim() === "") return {};
  try {
    return { response: readResponse(output) };
  } catch (error) {
    return { fault: error as Error };
  }
}
