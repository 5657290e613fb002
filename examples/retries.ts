// What a handler throws decides what happens next: try again, give up, or wait without it counting.
// Run: node --import jiti/register examples/retries.ts
// Uses DATABASE_URL if it is set, otherwise an embedded PostgreSQL under .oracle-worker/.
import { connect, createWorker, defineJob, RetryableError, TerminalError } from "oracle-worker";
import { z } from "zod";

const call = defineJob({
  type: "call_model",
  input: z.object({ provider: z.enum(["busy", "refuses", "not_yet"]) }),
  output: z.object({ answered_at_attempt: z.number() }),
  backoff: { kind: "fixed", baseSeconds: 0.1 },
  run({ input, job, snooze }) {
    const first = job.attemptNo === 1;
    if (input.provider === "busy" && first) throw new RetryableError("429", { retryAfterSeconds: 0.2 });
    if (input.provider === "refuses") throw new TerminalError("the prompt violates the provider's policy");
    if (input.provider === "not_yet" && first) snooze(0.2);
    return { answered_at_attempt: job.attemptNo };
  },
});

const oracle = await connect(process.env.DATABASE_URL ? {} : { embedded: true });
await oracle.migrate();
const queue = "example-retries";
const worker = await createWorker(oracle, { jobs: [call], queues: [queue] });

for (const provider of ["busy", "refuses", "not_yet"] as const) {
  const { id } = await oracle.enqueue(call, { provider }, { queue, maxAttempts: 2 });
  const job = await oracle.wait(id, { timeoutSeconds: 30 });
  const attempts = await oracle.attempts(id);
  const tried = attempts.map(({ status, cause }) => (cause ? `${status} (${cause})` : status));
  console.log(`${provider}: ${job?.state} after ${tried.join(", ")}; ${job?.interruptions} at no cost`);
}

await worker.stop();
await oracle.close();
