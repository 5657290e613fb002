// Submits a job with the SQL of sql-enqueue.sql, as a program in any language would, and runs it here.
// Run: DATABASE_URL=postgresql://… node --import jiti/register examples/sql-enqueue.ts
import { readFileSync } from "node:fs";
import { connect, createWorker, defineJob } from "oracle-worker";
import pg from "pg";
import { z } from "zod";

// The built-in summarize_text comes with `oracle-worker work`; a worker of your own brings its own handlers.
const summarize = defineJob({
  type: "summarize_text",
  input: z.object({ text: z.string(), max_bullets: z.number() }),
  output: z.object({ bullets: z.array(z.string()) }),
  run: ({ input }) => ({ bullets: input.text.split(/(?<=\.) /).slice(0, input.max_bullets) }),
});

const oracle = await connect();
await oracle.migrate();

const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
const { rows } = await client.query(readFileSync(new URL("./sql-enqueue.sql", import.meta.url), "utf8"));
await client.end();
const { job_id, created } = rows[0];
console.log(created ? "new job" : "the same job again");

const worker = await createWorker(oracle, { jobs: [summarize], queues: ["example-sql"] });
console.log(await oracle.job(job_id).result({ timeoutSeconds: 30 }));

await worker.stop();
await oracle.close();
