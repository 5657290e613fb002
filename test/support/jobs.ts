import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, RetryableError, TerminalError } from "oracle-worker";
import { z } from "zod";

/** Gives back what it got. */
export const echo = defineJob({
  type: "echo",
  input: z.object({ n: z.number() }),
  output: z.object({ n: z.number() }),
  run: ({ input }) => ({ n: input.n }),
});

/** Sleeps, and ends at once when told to stop. */
export const nap = defineJob({
  type: "nap",
  input: z.object({ ms: z.number() }),
  output: z.object({ attempt: z.number() }),
  async run({ input, job, signal }) {
    await sleep(input.ms, undefined, { signal });
    return { attempt: job.attemptNo };
  },
});

/** Fails as often as told, then succeeds. */
export const flaky = defineJob({
  type: "flaky",
  input: z.object({ failures: z.number(), how: z.enum(["plain", "retry", "terminal", "string"]) }),
  output: z.object({ attempt: z.number() }),
  backoff: { kind: "fixed", baseSeconds: 0.02 },
  run({ input, job }) {
    if (job.attemptNo > input.failures) return { attempt: job.attemptNo };
    if (input.how === "retry") throw new RetryableError("busy", { retryAfterSeconds: 0.05 });
    if (input.how === "terminal") throw new TerminalError("hopeless");
    if (input.how === "string") throw "just a string";
    throw new Error("broken \0 \ud800 text");
  },
});
