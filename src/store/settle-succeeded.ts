import type { Lease, Outcome, Success } from "../core/job.js";
import { binary, plainArray } from "./arrays.js";
import { type Database, type SqlClient, statement } from "./database.js";

/** An attempt and how it ended. */
export interface Settlement {
  lease: Pick<Lease, "jobId" | "attemptId" | "attemptNo">;
  outcome: Outcome;
}

// 005_lease_functions.sql: fences the jobs and stores the results.
const settleAll = statement<{ attempt_id: string }>(
  "settle-succeeded",
  `SELECT attempt_id FROM {schema}.settle_succeeded($1, $2, $3, $4, $5, $6) AS attempt_id`,
);

/** Completes jobs; returns the attempts that could not, because they had lost their job or left an effect open. */
export async function settleSucceeded(
  db: Database,
  settlements: (Settlement & { outcome: Success })[],
  finishedClaims: string[] = [],
  client?: SqlClient,
): Promise<string[]> {
  const values = [
    binary.ids(settlements.map(({ lease }) => lease.jobId)),
    binary.ids(settlements.map(({ lease }) => lease.attemptId)),
    binary.texts(settlements.map(({ outcome }) => outcome.resultText)),
    binary.texts(settlements.map(({ outcome }) => outcome.contentHash)),
    plainArray(settlements.map(({ outcome }) => outcome.recorded ?? false)),
    finishedClaims,
  ];
  return (await db.query(settleAll, values, client)).map((row) => row.attempt_id);
}
