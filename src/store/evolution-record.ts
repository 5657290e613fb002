import type { EvolutionRecord } from "../core/evolution.js";
import type { CommitStatement, Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";

/** As the worker's own role: in the order of the transaction, before the result is stored. */
export type OwnStatement = Pick<CommitStatement, "sql" | "values">;

// 016_evolution.sql: stores card, metrics and references to artifacts, if the attempt holds the job.
const persist = `SELECT {schema}.persist_evolution($1, $2, $3)`;

/** What stores a success's record, to be committed together with its result. */
export function persistRecord(
  { jobId, attemptId }: Pick<Lease, "jobId" | "attemptId">,
  record: EvolutionRecord,
): OwnStatement {
  return { sql: persist, values: [jobId, attemptId, record as unknown as JsonValue] };
}
