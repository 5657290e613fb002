// Defines a job type, submits one job, runs it and prints its result.
// Run: node --import jiti/register examples/quickstart.ts
// Uses DATABASE_URL if it is set, otherwise an embedded PostgreSQL under .oracle-worker/.
import { connect, createWorker, defineJob } from "oracle-worker";
import { z } from "zod";

const countWords = defineJob({
  type: "count_words",
  input: z.object({ text: z.string() }),
  output: z.object({ words: z.number() }),
  timeoutSeconds: 30,
  run({ input, log }) {
    log.info("counting", { characters: input.text.length });
    return { words: input.text.split(/\s+/).filter(Boolean).length };
  },
});

const oracle = await connect(process.env.DATABASE_URL ? {} : { embedded: true });
await oracle.migrate();

const queue = "example-quickstart";
const worker = await createWorker(oracle, { jobs: [countWords], queues: [queue] });

// The key makes the submission repeatable: run this file twice and it is still one job.
const job = await oracle.enqueue(
  countWords,
  { text: "one result, whatever crashes" },
  { queue, key: "quickstart" },
);
const { words } = await job.result({ timeoutSeconds: 30 });
console.log(`${job.created ? "new" : "known"} job, ${words} words`);

await worker.stop();
await oracle.close();
