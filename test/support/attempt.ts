import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { JobDefinition } from "oracle-worker";
import type { Lease } from "../../dist/core/job.js";
import type { JsonValue } from "../../dist/core/json.js";
import type { JobContext } from "../../dist/handlers/define.js";
import type { Clock, Runner } from "../../dist/handlers/runner.js";
import { until } from "./oracle.js";

/** What an attempt said to the worker around it. */
export interface Heard {
  progress: unknown[];
  usage: unknown[];
  log: unknown[];
  artifacts: { name: string; content: string; mediaType: string | undefined }[];
  /** How many artifacts were being kept at the same time, at most. */
  mostAtOnce: number;
}

const notHere = (): never => {
  throw new Error("not here");
};

/** One attempt in a runner, without a worker: shows what it hands to its context. */
export function attempt(
  runner: Runner,
  definition: JobDefinition,
  input: JsonValue,
  { signal = new AbortController().signal, refuseArtifacts = false } = {},
): { result: Promise<unknown>; heard: Heard } {
  const heard: Heard = { progress: [], usage: [], log: [], artifacts: [], mostAtOnce: 0 };
  let keeping = 0;
  const lease = {
    jobId: randomUUID(),
    attemptId: randomUUID(),
    attemptNo: 1,
    type: definition.type,
    tenantId: "default",
    queue: "default",
    idempotencyKey: "key",
    deadline: null,
    input,
  } as Lease;
  const note = (level: string) => (message: string, fields?: object) =>
    heard.log.push([level, message, fields]);
  const context: JobContext<unknown> = {
    input,
    job: { ...lease, id: lease.jobId },
    signal,
    log: { info: note("info"), warn: note("warn"), error: note("error") },
    progress: (...report) => heard.progress.push(report),
    usage: (used) => heard.usage.push(used),
    async artifact(name, content, { mediaType } = {}) {
      if (refuseArtifacts) throw new Error("no room");
      const text =
        content instanceof Uint8Array
          ? Buffer.from(content).toString()
          : typeof content === "string"
            ? content
            : JSON.stringify(content);
      heard.artifacts.push({ name, content: text, mediaType });
      heard.mostAtOnce = Math.max(heard.mostAtOnce, ++keeping);
      await sleep(50);
      keeping--;
      return { artifact_id: "1", sha256: "2", size: text.length };
    },
    step: notHere,
    effect: notHere,
    plan: notHere,
    onCommit: notHere,
    snooze: notHere,
  };
  const recorder = undefined as never;
  const clock: Clock = {
    waitFor: (place) => place,
    get stopError() {
      return signal.aborted ? (signal.reason as Error) : undefined;
    },
    onStop: undefined,
  };
  signal.addEventListener("abort", () => clock.onStop?.());
  return { result: Promise.resolve(runner.run({ lease, definition, context, recorder, clock })), heard };
}

/** Whether a process runs; the dead that nobody has buried do not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" && process.platform !== "linux";
  }
}

/** Whether its parent knows that it has ended. */
export function isReaped(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** The process ids that handlers left in a file, once there are so many. */
export function pidsIn(file: string, count = 1): Promise<number[]> {
  return until(`${count} process ids in ${file}`, async () => {
    try {
      const pids = readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number);
      return pids.length >= count && pids;
    } catch {
      return false;
    }
  });
}
