import { binary, written } from "./arrays.js";
import { type Database, statement } from "./database.js";
import type { NewJob, SubmitOptions } from "./new-job.js";

// 006_enqueue.sql: what most submissions are, at two thirds of the price of enqueue_jobs.
const statementAlike = statement<unknown>(
  "enqueue-alike",
  "SELECT {schema}.enqueue_alike($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
);

/** Whether jobs that cannot join others are due at once and differ in their inputs only. */
export function areAlike(jobs: NewJob[]): boolean {
  const first = jobs[0] as NewJob;
  return jobs.every(
    (job) =>
      job.runAfter === undefined &&
      job.deadline === undefined &&
      job.handlerVersion === undefined &&
      job.concurrencyKey === undefined &&
      job.replayOf === undefined &&
      job.type === first.type &&
      job.queue === first.queue &&
      job.tenantId === first.tenantId &&
      job.priority === first.priority &&
      job.maxAttempts === first.maxAttempts &&
      job.timeoutSeconds === first.timeoutSeconds,
  );
}

/** False when an earlier try, whose reply was lost, has stored the same jobs meanwhile: enqueue_jobs passes them by. */
export async function insertAlike(
  db: Database,
  jobs: NewJob[],
  { client, announcing = false }: SubmitOptions,
): Promise<boolean> {
  const { tenantId, queue, type, priority, maxAttempts, timeoutSeconds } = jobs[0] as NewJob;
  const values = [
    tenantId,
    queue,
    type,
    priority,
    maxAttempts,
    timeoutSeconds ?? null,
    // The caller's client may be another driver's.
    (client ? written : binary).ids(jobs.map((job) => job.jobId)),
    jobs.map((job) => job.specHash).join("\n"),
    jobs.map((job) => job.inputText).join("\n"),
    announcing,
  ];
  try {
    await db.query(statementAlike, values, client);
    return true;
  } catch (error) {
    // A caller's transaction cannot go on after an error.
    if (client || !isOfJobs(error, db.schema)) throw error;
    return false;
  }
}

function isOfJobs(error: unknown, schema: string): boolean {
  const {
    code,
    constraint,
    schema: where,
  } = error as { code?: string; constraint?: string; schema?: string };
  return code === "23505" && constraint === "jobs_pkey" && where === schema;
}
