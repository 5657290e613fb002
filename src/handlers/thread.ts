import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { MessageChannel } from "node:worker_threads";
import { Tinypool } from "tinypool";
import { OracleError } from "../core/errors.js";
import type { JobDefinition } from "./define.js";
import { allowedEnvironment } from "./environment.js";
import { Gate } from "./gate.js";
import { serveMessage } from "./host.js";
import {
  fromErrorEnvelope,
  type HandlerMessage,
  type ResponseEnvelope,
  toCancel,
  toRequest,
  type WorkerMessage,
} from "./protocol.js";
import type { Run, Runner } from "./runner.js";
import type { ThreadTask } from "./thread-main.js";

const threadMain = fileURLToPath(new URL("./thread-main.js", import.meta.url));
/** More threads than cores compute no faster; one must not keep all others waiting. */
const MOST_THREADS = Math.max(2, availableParallelism());
/** From the cancel to the end by force. */
const CANCEL_GRACE_MS = 500;
const IDLE_MS = 30_000;

/** Runs handlers in worker threads, which can be ended whatever they do. Attempts beyond the threads wait. */
export class ThreadRunner implements Runner {
  private readonly pools = new Map<string, Tinypool>();
  private readonly gate = new Gate(MOST_THREADS);

  async run(run: Run): Promise<unknown> {
    const { module, type } = run.definition;
    if (module === undefined) {
      throw new OracleError(
        "HANDLERS_INVALID",
        `Job type ${type} runs in a thread and must be defined in a module of its own; this one was not defined in a file.`,
      );
    }
    await run.clock.waitFor(this.gate.enter(run.context.signal));
    try {
      return await runInThread(this.poolFor(run.definition), module, run);
    } finally {
      this.gate.leave();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.pools.values()].map((pool) => pool.destroy()));
    this.pools.clear();
  }

  /** Environment and memory are a thread's from its birth: jobs that differ in them cannot share one. */
  private poolFor(definition: JobDefinition): Tinypool {
    const { memoryMb } = definition.process;
    const env = { ...allowedEnvironment(definition), ORACLE_WORKER_ISOLATED: "1" };
    const key = JSON.stringify([memoryMb, env]);
    let pool = this.pools.get(key);
    if (!pool) {
      pool = new Tinypool({
        minThreads: 0,
        maxThreads: MOST_THREADS,
        idleTimeout: IDLE_MS,
        // An idle thread must keep its event loop: what a handler left behind fails then, not in the next attempt.
        useAtomics: false,
        env,
        ...(memoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
      });
      // A thread that dies while it has nothing to do is nobody's fault.
      pool.on("error", () => {});
      this.pools.set(key, pool);
    }
    return pool;
  }
}

async function runInThread(pool: Tinypool, module: string, run: Run): Promise<unknown> {
  const { lease, context } = run;
  const { signal } = context;
  const { port1: port, port2 } = new MessageChannel();
  const kill = new AbortController();
  let response: ResponseEnvelope | undefined;
  let grace: NodeJS.Timeout | undefined;
  port.on("message", (text: string) => {
    const message = JSON.parse(text) as ResponseEnvelope | HandlerMessage;
    if ("ok" in message) response = message;
    else {
      const reply = (words: WorkerMessage) => port.postMessage(JSON.stringify(words));
      serveMessage(run, message, reply).catch((error: unknown) => kill.abort(error));
    }
  });
  const closed = once(port, "close");
  const cancel = () => {
    port.postMessage(JSON.stringify(toCancel(lease, signal.reason)));
    grace = setTimeout(() => kill.abort(signal.reason), CANCEL_GRACE_MS);
  };
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  const task: ThreadTask = { module, request: toRequest(lease), port: port2 };
  const options = { filename: threadMain, name: "runTask", signal: kill.signal, transferList: [port2] };
  const ended = pool.run(task, options).then(
    () => undefined,
    (error: Error) => error,
  );
  watchExits(pool);
  const death = await ended;
  // The thread closes its port when the attempt ends, or by dying; one that never got there is closed here.
  port2.close();
  await closed;
  clearTimeout(grace);
  signal.removeEventListener("abort", cancel);
  if (response?.ok) return response.result;
  if (response) throw fromErrorEnvelope(response.error);
  throw kill.signal.aborted ? kill.signal.reason : toThreadDeath(death, lease.type);
}

const watched = new WeakSet<object>();

/** The pool hears of a thread's errors, not of its exit: without this the attempt would never end. */
function watchExits(pool: Tinypool): void {
  for (const thread of pool.threads) {
    if (watched.has(thread)) continue;
    watched.add(thread);
    thread.once("exit", (code: number) => {
      if (pool.threads.includes(thread)) thread.emit("error", new Error(`it exited with code ${code}`));
    });
  }
}

function toThreadDeath(cause: (Error & { code?: string }) | undefined, type: string): OracleError {
  return cause?.code === "ERR_WORKER_OUT_OF_MEMORY"
    ? new OracleError("MEMORY_LIMIT", `The thread of job type ${type} used more memory than its limit.`)
    : new OracleError("HANDLER_EXITED", `The thread of job type ${type} died: ${cause?.message}.`, { cause });
}
