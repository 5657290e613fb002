import { appendFileSync } from "node:fs";
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
