import type { Contestant } from "../types.ts";
import { barePg } from "./bare-pg.ts";
import { bullmqPostgres } from "./bullmq-postgres.ts";
import { bullmqRedis, bullmqRedisAof } from "./bullmq-redis.ts";
import { dbos } from "./dbos.ts";
import { graphileWorker } from "./graphile-worker.ts";
import { oraclePython } from "./oracle-python.ts";
import { oracleWorker, oracleWorkerRedis } from "./oracle-worker.ts";
import { pgBoss } from "./pg-boss.ts";
import { rq, rqSimple } from "./rq.ts";

export const contestants: Contestant[] = [
  oracleWorker,
  oracleWorkerRedis,
  ...oraclePython,
  graphileWorker,
  pgBoss,
  bullmqPostgres,
  bullmqRedis,
  bullmqRedisAof,
  dbos,
  rq,
  rqSimple,
  barePg,
];

export async function findContestant(name: string): Promise<Contestant> {
  const found = contestants.find((contestant) => contestant.name === name);
  if (!found) throw new Error(`no contestant ${name}`);
  return found;
}
