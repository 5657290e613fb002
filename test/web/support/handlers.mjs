import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "oracle-worker";
import { z } from "zod";

/** Takes its process with it the first time, before it hears whether the charge went through. */
export const charge = defineJob({
  type: "charge_card",
  input: z.object({ cents: z.int() }),
  output: z.object({ receipt: z.string() }),
  run: ({ input, effect }) =>
    effect({ key: "charge", kind: "unsafe", request: { cents: input.cents } }, async () => {
      process.kill(process.pid, "SIGKILL");
      await sleep(60_000);
      return { receipt: "never" };
    }),
});

/** Dies in its first attempt, finishes in its second. */
export const fragile = defineJob({
  type: "fragile",
  input: z.object({}),
  output: z.object({ attempt: z.int() }),
  run({ job }) {
    if (job.attemptNo === 1) process.kill(process.pid, "SIGKILL");
    return { attempt: job.attemptNo };
  },
});
