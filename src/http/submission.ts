import type { z } from "zod";
import { OracleError } from "../core/errors.js";
import type { EnqueueOptions } from "../submit.js";
import type { newJob } from "./schemas/jobs.js";

/** The options of a submission, from the names of the API to those of the library. */
export function toOptions(
  body: z.output<typeof newJob>,
  tenant: string,
  key: string | undefined,
): EnqueueOptions {
  const options = {
    tenant,
    key,
    queue: body.queue,
    priority: body.priority,
    runAfter: moment(body.run_after),
    deadline: moment(body.deadline),
    maxAttempts: body.max_attempts,
    timeoutSeconds: body.timeout_seconds,
    dedupe: body.dedupe,
    version: body.version,
    concurrencyKey: body.concurrency_key,
    concurrencyLimit: body.concurrency_limit,
  };
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as EnqueueOptions;
}

/** Headers arrive as Latin-1; a key of other letters must be sent percent-encoded or in the bulk form. */
export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && header.length >= 1 && header.length <= 1000) return header;
  const message = "Idempotency-Key must be one text of 1 to 1000 characters.";
  throw new OracleError("INVALID_ARGUMENT", message, { field: "Idempotency-Key" });
}

function moment(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
