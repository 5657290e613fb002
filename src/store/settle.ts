import type { Outcome, StoredError, Success } from "../core/job.js";
import { type Database, statement } from "./database.js";
import { type Settlement, settleSucceeded } from "./settle-succeeded.js";
import { commitTogether } from "./settle-with-commits.js";

export type { Settlement };

/** Releases that cost no attempt; past these an interruption is charged like a failure. */
export const FREE_INTERRUPTIONS = 20;

interface OtherOutcome {
  job_id: string;
  attempt_id: string;
  kind: Outcome["kind"];
  delay_seconds: number;
  cause: string;
  error: StoredError | null;
  hold_reason: string | null;
}

// 011_endings.sql: fences the jobs, works out what follows for each, and writes it.
const settleOthers = statement<{ attempt_id: string; state: string }>(
  "settle-others",
  `SELECT attempt_id, state FROM {schema}.settle_others($1, $2)`,
);

// An outcome that came after its lease was taken over: evidence beside the attempt, never the result. One that is
// written already, because the reply to the first try was lost, comes back as what it is.
const supersede = statement<{ attempt_id: string; state: string }>(
  "supersede",
  `WITH late AS MATERIALIZED (
     SELECT * FROM jsonb_to_recordset($1::jsonb)
       AS o(job_id uuid, attempt_id uuid, attempt_no integer, output jsonb)
   ), kept AS (
     UPDATE {schema}.past_attempts a SET status = 'SUPERSEDED', late_output = late.output
     FROM late
     WHERE a.job_id = late.job_id AND a.attempt_no = late.attempt_no AND a.attempt_id = late.attempt_id
       AND a.status = 'LEASE_EXPIRED'
   )
   SELECT late.attempt_id, j.state::text AS state
   FROM late JOIN {schema}.jobs j ON j.job_id = late.job_id AND j.current_attempt_id = late.attempt_id
   WHERE j.state = 'SUCCEEDED' OR EXISTS (
     SELECT FROM {schema}.past_attempts p
     WHERE p.job_id = late.job_id AND p.attempt_no = late.attempt_no AND p.attempt_id = late.attempt_id
       AND p.status IN ('FAILED', 'RELEASED', 'CANCELLED') AND p.cause IS DISTINCT FROM 'BY_HAND')`,
);

/** What a success becomes that the database refuses although the attempt still has its job. */
const leftOpen = {
  kind: "terminal",
  error: {
    code: "EFFECT_OPEN",
    message: "An effect of this job, perhaps of an earlier attempt, is planned, under way or in doubt.",
    retryable: false,
  },
} as const satisfies Outcome;

/**
 * Writes outcomes, the only place that does. Returns the attempts that won, with the state of their jobs;
 * those missing had lost their lease, and what they brought is kept as evidence. A success that could not be
 * written as one is replaced in its settlement by what was written.
 */
export async function settle(
  db: Database,
  settlements: Settlement[],
  finishedClaims: string[] = [],
): Promise<Map<string, string>> {
  const won = new Map<string, string>();
  for (const settlement of settlements) {
    if (hasCommits(settlement) && (await commitTogether(db, settlement)))
      won.set(settlement.lease.attemptId, "SUCCEEDED");
  }
  const succeeded = settlements.filter(isSuccess);
  const plain = succeeded.filter((settlement) => !hasCommits(settlement));
  if (plain.length > 0) {
    const lost = new Set(await settleSucceeded(db, plain, finishedClaims));
    for (const { lease } of plain) if (!lost.has(lease.attemptId)) won.set(lease.attemptId, "SUCCEEDED");
  }
  if (won.size === settlements.length) return won;
  const refused = succeeded.filter(({ lease }) => !won.has(lease.attemptId));
  const others = [
    ...settlements.filter(isOther).map(({ lease, outcome }) => toOtherOutcome(lease, outcome)),
    ...refused.map(({ lease }) => toOtherOutcome(lease, leftOpen)),
  ];
  if (others.length > 0) {
    const rows = await db.query(settleOthers, [JSON.stringify(others), FREE_INTERRUPTIONS]);
    for (const row of rows) won.set(row.attempt_id, row.state);
    for (const settlement of refused) {
      if (won.has(settlement.lease.attemptId)) (settlement as Settlement).outcome = leftOpen;
    }
  }
  const lost = settlements.filter(({ lease }) => !won.has(lease.attemptId));
  if (lost.length > 0) {
    const written = await db.query(supersede, [JSON.stringify(lost.map(toEvidence))]);
    for (const row of written) won.set(row.attempt_id, row.state);
  }
  return won;
}

function isSuccess(settlement: Settlement): settlement is Settlement & { outcome: Success } {
  return settlement.outcome.kind === "succeeded";
}

function isOther(settlement: Settlement): settlement is Settlement & { outcome: Exclude<Outcome, Success> } {
  return !isSuccess(settlement);
}

/** Whether it waits for statements of its handler's own. */
export function hasCommits({ outcome }: Settlement): boolean {
  return outcome.kind === "succeeded" && outcome.commits !== undefined;
}

function toOtherOutcome(lease: Settlement["lease"], outcome: Exclude<Outcome, Success>): OtherOutcome {
  const { kind } = outcome;
  return {
    job_id: lease.jobId,
    attempt_id: lease.attemptId,
    kind,
    delay_seconds: "delaySeconds" in outcome ? outcome.delaySeconds : 0,
    cause: causeOf(outcome),
    error: ("error" in outcome && outcome.error) || null,
    hold_reason: kind === "held" ? outcome.reason : null,
  };
}

function causeOf(outcome: Exclude<Outcome, Success>): string {
  switch (outcome.kind) {
    case "released":
      return outcome.cause;
    case "snoozed":
      return "SNOOZED";
    case "cancelled":
      return "CANCELLED";
    case "held":
      return outcome.error?.code ?? "PLANNED";
    default:
      return outcome.error.code;
  }
}

function toEvidence({ lease, outcome }: Settlement): Record<string, unknown> {
  return {
    job_id: lease.jobId,
    attempt_id: lease.attemptId,
    attempt_no: lease.attemptNo,
    output:
      outcome.kind === "succeeded"
        ? { kind: outcome.kind, result: JSON.parse(outcome.resultText), content_hash: outcome.contentHash }
        : outcome,
  };
}
