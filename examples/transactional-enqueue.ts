// A row of your own and the job that works on it commit together, or not at all.
// Run: DATABASE_URL=postgresql://… node --import jiti/register examples/transactional-enqueue.ts
import { connect, createWorker, defineJob } from "oracle-worker";
import pg from "pg";
import { z } from "zod";

const welcome = defineJob({
  type: "welcome",
  input: z.object({ user: z.string() }),
  output: z.string(),
  run: ({ input }) => `welcome, ${input.user}`,
});

const oracle = await connect();
await oracle.migrate();
const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
await client.query("CREATE TEMPORARY TABLE users (name text PRIMARY KEY)");

const queue = "example-transactional";
async function signUp(user: string, end: "COMMIT" | "ROLLBACK"): Promise<string> {
  await client.query("BEGIN");
  await client.query("INSERT INTO users (name) VALUES ($1)", [user]);
  const job = await oracle.enqueue(welcome, { user }, { queue, client });
  await client.query(end);
  return job.id;
}

const kept = await signUp("ada", "COMMIT");
const undone = await signUp("bob", "ROLLBACK");

const worker = await createWorker(oracle, { jobs: [welcome], queues: [queue] });
console.log("committed:", await oracle.job(kept).result({ timeoutSeconds: 30 }));
console.log("rolled back:", (await oracle.get(undone)) ?? "no such job");

await worker.stop();
await client.end();
await oracle.close();
