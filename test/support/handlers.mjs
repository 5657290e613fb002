import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "oracle-worker";
import { z } from "zod";

/** Leaves a line per run in a file that outlives the process, then takes its time. */
export const logged = defineJob({
  type: "logged",
  input: z.object({ file: z.string(), ms: z.number() }),
  output: z.object({ pid: z.number() }),
  async run({ input, job, signal }) {
    appendFileSync(input.file, `${job.id} ${job.attemptNo} ${process.pid}\n`);
    await sleep(input.ms, undefined, { signal });
    return { pid: process.pid };
  },
});

/** Leaves a line when it begins and one when it ends: two of the former in a row are two runs at once. */
export const spanned = defineJob({
  type: "spanned",
  input: z.object({ file: z.string(), ms: z.number() }),
  output: z.null(),
  async run({ input }) {
    appendFileSync(input.file, `begin ${process.pid}\n`);
    await sleep(input.ms);
    appendFileSync(input.file, `end ${process.pid}\n`);
    return null;
  },
});

/** Ignores its signal. */
export const stubborn = defineJob({
  type: "stubborn",
  input: z.object({ ms: z.number() }),
  output: z.null(),
  async run({ input }) {
    await sleep(input.ms);
    return null;
  },
});

/** Takes its process with it. */
export const poison = defineJob({
  type: "poison",
  input: z.object({}),
  output: z.null(),
  backoff: { kind: "fixed", baseSeconds: 0.1 },
  run() {
    process.kill(process.pid, "SIGKILL");
    return null;
  },
});

export const quick = defineJob({
  type: "quick",
  input: z.object({ n: z.number() }),
  output: z.object({ n: z.number() }),
  run: ({ input }) => ({ n: input.n }),
});

/** Blocks its event loop for ever. */
export const block = defineJob({
  type: "block",
  input: z.object({}),
  output: z.null(),
  run() {
    for (;;);
  },
});

let throwsNext = false;
setInterval(() => {
  if (!throwsNext) return;
  throwsNext = false;
  throw new Error("of nobody");
}, 20).unref();

const strays = {
  "rejects late": () => void setTimeout(() => Promise.reject(new Error("late")), 50),
  "throws late": () => void setTimeout(thrower("late"), 50),
  "throws while it runs": () => new Promise(() => setTimeout(thrower("uncaught"), 50)),
  "lets nobody throw": () => {
    throwsNext = true;
    return sleep(60_000);
  },
};
function thrower(message) {
  return () => {
    throw new Error(message);
  };
}

/** Leaves an error uncaught. */
export const stray = defineJob({
  type: "stray",
  input: z.object({ how: z.string() }),
  output: z.any(),
  async run({ input, job }) {
    if (job.attemptNo === 1) await strays[input.how]();
    return "returned";
  },
});

/** Takes its process with it in its first attempt. */
export const poisonOnce = defineJob({
  type: "poison-once",
  input: z.object({ file: z.string() }),
  output: z.object({ pid: z.number(), canary: z.string() }),
  async run({ input, job }) {
    appendFileSync(input.file, `${job.id} ${job.attemptNo} ${process.pid}\n`);
    if (job.attemptNo === 1) process.kill(process.pid, "SIGKILL");
    return { pid: process.pid, canary: process.env.CANARY ?? "" };
  },
});

/** Says what it does, waits for a file to appear, and leaves artifacts. */
export const reporting = defineJob({
  type: "reporting",
  input: z.object({ gate: z.string(), name: z.string() }),
  output: z.object({ sha256: z.string() }),
  async run({ input, log, progress, artifact, signal }) {
    log.info("waiting", { gate: input.gate });
    progress(0.5, "half way", { at: "the gate" });
    while (!existsSync(input.gate)) await sleep(20, undefined, { signal });
    log.warn("\u001b[31mred\nand on", { big: 2n ** 64n });
    await artifact("small.json", { b: 1, a: [true] });
    await artifact("text.txt", `${"line\n".repeat(3000)}\u001b[31m`);
    const { sha256 } = await artifact(
      input.name,
      Buffer.from(Array.from({ length: 65_536 }, (_, n) => n % 256)),
    );
    log.error("done");
    progress(1);
    return { sha256 };
  },
});
