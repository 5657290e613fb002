// Starts a model run by a message: PostgreSQL has the job, Redis carries its id to a worker.
// Run: node examples/model-run/start.mjs [RUNS]
// Needs DATABASE_URL and REDIS_URL, and a worker: see README.md beside this file.
import { connect } from "oracle-worker";
import { redisDispatcher } from "oracle-worker/redis";

const runs = Number(process.argv[2] ?? 40_000);
const dispatcher = redisDispatcher({ url: process.env.REDIS_URL ?? "redis://127.0.0.1:6379" });
const oracle = await connect({ dispatcher });

const input = { runs, days: 150, people: 100_000, contacts: 0.3, recovery: 0.1, seed: 7 };
// Whoever asks for the same numbers while they are being computed joins the job that computes them.
const job = await oracle.enqueue("model_run", input, { queue: "models", dedupe: "active" });
console.log(job.id, job.created ? "new" : "joined");

await oracle.close();
await dispatcher.close();
