// A worker without a supervisor, for tests that kill it.
import { connect, createWorker } from "oracle-worker";
import { loadHandlers } from "../../../dist/handlers/load.js";

const oracle = await connect({ databaseUrl: process.env.DATABASE_URL });
const jobs = [];
for (const path of process.env.HANDLERS.split(",")) jobs.push(...(await loadHandlers(path)));
const worker = await createWorker(oracle, {
  jobs,
  concurrency: 2,
  leaseSeconds: 1.5,
  pollSeconds: 0.2,
});
process.once("SIGTERM", async () => {
  await worker.stop();
  await oracle.close();
});
