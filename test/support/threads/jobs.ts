import { setTimeout as sleep } from "node:timers/promises";
import { threadId } from "node:worker_threads";
import { defineJob } from "oracle-worker";
import { z } from "zod";

export const where = defineJob({
  type: "where",
  isolation: "thread",
  input: z.object({ ms: z.number() }),
  output: z.object({ thread: z.number(), pid: z.number(), env: z.array(z.string()) }),
  async run({ input }) {
    await sleep(input.ms);
    return { thread: threadId, pid: process.pid, env: Object.keys(process.env).sort() };
  },
});

export const allowed = defineJob({
  type: "allowed",
  isolation: "thread",
  input: where.input,
  output: where.output,
  env: ["THREADS_ALLOWED"],
  run: () => ({ thread: threadId, pid: process.pid, env: [process.env.THREADS_ALLOWED ?? ""] }),
});

export const hoards = defineJob({
  type: "hoards",
  isolation: "thread",
  memoryMb: 32,
  input: z.object({}),
  output: z.null(),
  run() {
    for (const hoard: number[][] = []; ; ) hoard.push(new Array(10_000).fill(hoard.length));
  },
});

export const blocks = defineJob({
  type: "blocks",
  isolation: "thread",
  input: z.object({}),
  output: z.null(),
  timeoutSeconds: 1,
  run() {
    for (;;);
  },
});

/** Says all it can before its thread is gone. */
export const chatters = defineJob({
  type: "chatters",
  isolation: "thread",
  input: z.object({ lines: z.number() }),
  output: z.null(),
  run({ input, log }) {
    for (let n = 0; n < input.lines; n++) log.info("line", { n, big: 1n, call: () => n });
    return null;
  },
});

/** Defined here, but not exported. */
export const hide = () =>
  defineJob({ type: "hidden", isolation: "thread", input: z.object({}), output: z.null(), run: () => null });
