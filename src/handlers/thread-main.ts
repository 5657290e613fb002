import { AsyncLocalStorage } from "node:async_hooks";
import type { MessagePort } from "node:worker_threads";
import { answer, strayAnswer } from "./isolated.js";
import type { RequestEnvelope, WorkerMessage } from "./protocol.js";
import { RemoteContext } from "./remote-context.js";

// What runs inside a thread of the pool: one attempt at a time.

export interface ThreadTask {
  module: string;
  request: RequestEnvelope;
  /** Texts of JSON, as in a pipe: what a handler logs or returns need not be fit for a structured clone. */
  port: MessagePort;
}

/** What is going on around a piece of code; code that outlives its attempt is recognised by it. */
const attempts = new AsyncLocalStorage<ThreadTask>();
let running: ThreadTask | undefined;

export async function runTask(task: ThreadTask): Promise<void> {
  const { module, request, port } = task;
  const remote = new RemoteContext(request, (message) => port.postMessage(JSON.stringify(message)));
  port.on("message", (text: string) => remote.hear(JSON.parse(text) as WorkerMessage));
  running = task;
  const response = await attempts.run(task, () => answer(module, request, remote));
  running = undefined;
  port.postMessage(response);
  port.close();
}

const { exit } = process;

/** A stray error of the running attempt ends it and its thread; one of an earlier attempt must not. */
function onStray(thrown: unknown): void {
  const task = attempts.getStore();
  if (task === undefined || task !== running) {
    console.error("An error after its attempt had ended:", thrown);
    return;
  }
  task.port.postMessage(strayAnswer(task.request, thrown));
  exit(1);
}

process.on("uncaughtException", onStray);
process.on("unhandledRejection", onStray);
process.exit = (code) => {
  if (attempts.getStore() === running) exit(code);
  throw new Error("process.exit() after its attempt had ended");
};
