// A worker without a supervisor, in a process that can be killed.
import { connect, createWorker } from "oracle-worker";
import { stays } from "./executables.mjs";

const oracle = await connect({ databaseUrl: process.env.DATABASE_URL });
await createWorker(oracle, { jobs: [stays], queues: [process.argv[2]] });
