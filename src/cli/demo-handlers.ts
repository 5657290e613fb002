import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { defineJob } from "../handlers/define.js";

/** Runs long enough to be killed in the middle. */
export const demoSlow = defineJob({
  type: "demo_slow",
  input: z.object({ seconds: z.number().min(0).max(600) }),
  output: z.object({ finished_by_attempt: z.int() }),
  async run({ input, job, signal }) {
    await sleep(input.seconds * 1000, undefined, { signal });
    return { finished_by_attempt: job.attemptNo };
  },
});
