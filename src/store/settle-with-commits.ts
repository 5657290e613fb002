import { OracleError } from "../core/errors.js";
import { contentHash } from "../core/hash.js";
import type { CommitStatement, Success } from "../core/job.js";
import { toStoredError } from "../core/retry.js";
import { type Database, type SqlClient, statement } from "./database.js";
import { isTransient, toDatabaseError } from "./database-errors.js";
import { type Settlement, settleSucceeded } from "./settle-succeeded.js";

// No lock: it only spares the statements of an attempt that has lost its job. The settlement fences.
const stillHeld = statement<{ transaction: string }>(
  "commit-still-held",
  `SELECT pg_current_xact_id()::text AS transaction FROM {schema}.jobs
   WHERE job_id = $1 AND current_attempt_id = $2 AND state = 'RUNNING'`,
);

const sameTransaction = statement<{ same: boolean }>(
  "commit-same-transaction",
  `SELECT pg_current_xact_id()::text = $1 AS same`,
);

// 010_steps_and_effects.sql: keeps the statements as effects of the job.
const recordCommits = statement<unknown>(
  "record-commits",
  `SELECT {schema}.record_commits($1, $2, $3, $4, $5, $6)`,
);

/** Back to the login and to a planner that chooses freely: the statements are about the application's own tables. */
const asLogin = `SET LOCAL ROLE NONE; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on;
  SET LOCAL enable_mergejoin = on; SET LOCAL enable_sort = on; SET LOCAL plan_cache_mode = auto;
  SET LOCAL statement_timeout = '20s'`;

class NotOurs extends Error {}

/** One of the handler's own statements is to blame: tried again it would fail again. */
class StatementFailed extends Error {}

/**
 * Settles one success in the transaction of its handler's own statements; false when the attempt has lost its job.
 * Statements that fail take the success with them: it is replaced in the settlement by a failure.
 */
export async function commitTogether(db: Database, settlement: Settlement): Promise<boolean> {
  const success = settlement.outcome as Success & { commits: NonNullable<Success["commits"]> };
  try {
    await db.transaction((client) => writeAll(db, { ...settlement, outcome: success }, client));
    return true;
  } catch (error) {
    if (error instanceof NotOurs) return false;
    if (!(error instanceof StatementFailed) && isTransient(error)) throw error;
    const { message } = error as Error;
    const failure = new OracleError("COMMIT_FAILED", `A statement given to onCommit failed: ${message}.`);
    settlement.outcome = {
      kind: "retryable",
      error: toStoredError(failure),
      delaySeconds: success.commits.delaySeconds,
    };
    return false;
  }
}

async function writeAll(
  db: Database,
  settlement: Settlement & { outcome: Success & { commits: { statements: CommitStatement[] } } },
  client: SqlClient,
): Promise<void> {
  const { jobId, attemptId } = settlement.lease;
  const { statements } = settlement.outcome.commits;
  const [held] = await db.query(stillHeld, [jobId, attemptId], client);
  if (!held) throw new NotOurs();
  for (const each of statements.filter(({ own }) => own)) {
    await runStatement(db, { ...each, sql: db.render(each.sql) }, client);
  }
  await client.query({ text: asLogin });
  for (const each of statements.filter(({ own }) => !own)) await runStatement(db, each, client);
  await client.query({ text: `SET LOCAL ROLE ${db.schema}_worker` });
  const [check] = await db.query(sameTransaction, [held.transaction], client);
  if (!check?.same) throw new Error("it ended the transaction");
  const requests = statements.map(({ sql, values }) => ({ sql, values }));
  await db.query(
    recordCommits,
    [
      jobId,
      attemptId,
      statements.map(({ name }) => name),
      statements.map(({ seq }) => seq),
      requests.map((request) => JSON.stringify(request)),
      requests.map((request) => contentHash(request)),
    ],
    client,
  );
  if ((await settleSucceeded(db, [settlement], [], client)).length > 0) throw new NotOurs();
}

async function runStatement(
  db: Database,
  { name, sql, values }: CommitStatement,
  client: SqlClient,
): Promise<void> {
  await client.query({ text: sql, values, queryMode: "extended" }).catch((error: Error) => {
    throw isOwnFault(error, db.schema) ? new StatementFailed(`${name}: ${error.message}`) : error;
  });
}

/** Took too long, waited too long for a lock, or is wrong; not: the database is away, or two transactions collided. */
function isOwnFault(error: Error & { code?: string }, schema: string): boolean {
  if (error.code === "57014" || error.code === "55P03" || /read timeout/.test(error.message)) return true;
  return !isTransient(toDatabaseError(error, schema));
}
