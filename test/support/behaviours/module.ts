import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, type JobContext, RetryableError, TerminalError } from "oracle-worker";
import { z } from "zod";

// What test/conformance.test.ts asks of a handler, in JavaScript; program.py is the same in Python.

const input = z.object({
  how: z.string(),
  n: z.number().default(0),
  ms: z.number().default(0),
  file: z.string().default(""),
  name: z.string().default(""),
});
type Input = z.infer<typeof input>;

class Unusual extends Error {
  override name = "Unusual";
}

const ways: Record<string, (context: JobContext<Input>) => unknown> = {
  doubles: async ({ input }) => {
    await sleep(input.ms);
    return { n: input.n * 2 };
  },
  "breaks the output schema": () => ({ n: "many" }),
  "returns no JSON": () => ({ n: 1, extra: [Number.NaN] }),
  throws: () => {
    throw new Unusual("broken");
  },
  "throws retryable": () => {
    throw new RetryableError("busy", { retryAfterSeconds: 7 });
  },
  "throws terminal": () => {
    throw new TerminalError("hopeless");
  },
  "throws a string": () => {
    throw "just a string";
  },
  "rejects with a circle": async () => {
    const circle: unknown[] = [];
    circle.push(circle);
    throw circle;
  },
  "throws a NUL": () => {
    throw new Unusual("zero \0 and half \ud800 a pair");
  },
  snoozes: ({ snooze }) => snooze(30),
  talks: ({ progress, log }) => {
    progress(0.5, "half", { step: 1 });
    log.info("hello", { n: 1 });
    return { n: 1 };
  },
  "talks loosely": ({ progress, log }) => {
    const circle: unknown[] = [];
    circle.push(circle, 1n);
    for (const fraction of [Number.NaN, "half", null, undefined]) progress(fraction as number);
    progress(0.5, 5 as never, circle as never);
    for (const message of [5, null, undefined, circle]) log.info(message as never);
    log.info("fields", 5 as never);
    log.info("fields", { circle });
    return { n: 1 };
  },
  "keeps an artifact": async ({ artifact }) => ({ n: 1, extra: await artifact("notes", { a: [1] }) }),
  "keeps a text": async ({ artifact }) => ({ n: 1, extra: await artifact("a.txt", "hello") }),
  "remembers steps and effects": async ({ step, effect, job }) => {
    const drawn = await step("draw", () => Math.random());
    const request = { to: "somebody" };
    const sent = await effect({ key: "mail", kind: "unsafe", request }, ({ idempotencyKey }) => ({
      key: idempotencyKey,
      attempt: job.attemptNo,
    }));
    if (job.attemptNo === 1) throw new Unusual("after all that");
    return { n: drawn, extra: sent };
  },
  "heeds its signal": async ({ input, signal }) => {
    begin(input);
    await sleep(60_000, undefined, { signal });
  },
  "computes for ever": ({ input }) => {
    begin(input);
    for (;;);
  },
  exits: () => process.exit(3),
  "leaves an error uncaught": () =>
    new Promise(() => {
      setTimeout(() => {
        throw new Unusual("uncaught");
      }, 5);
    }),
  "rejects after its return": () => {
    setTimeout(() => Promise.reject(new Unusual("too late")), 5);
    return { n: 1 };
  },
  "shows its environment": ({ input }) => ({ n: 1, extra: process.env[input.name] ?? null }),
};

/** Tells the test that the handler runs. */
function begin({ file }: Input): void {
  writeFileSync(file, String(process.pid));
}

const behave = (type: string, options: { isolation: "inline" | "thread" | "process"; warm?: number }) =>
  defineJob({
    type,
    input,
    output: z.object({ n: z.number(), extra: z.any().optional() }),
    backoff: { kind: "fixed", baseSeconds: 0 },
    run: (context) => ways[context.input.how]?.(context) as { n: number },
    ...options,
  });

export const inline = behave("inline", { isolation: "inline" });
export const inThread = behave("thread", { isolation: "thread" });
export const inProcess = behave("process", { isolation: "process" });
export const inWarmProcess = behave("warm process", { isolation: "process", warm: 1 });
