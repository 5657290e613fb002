import type { Lease, Outcome } from "../core/job.js";
import type { Database } from "../store/database.js";
import { findServedTypes } from "../store/workers.js";

/** A type unknown here: somebody else's if a live worker serves it, otherwise nobody's. */
export async function judgeUnknownType(db: Database, lease: Lease): Promise<Outcome> {
  // A database that does not answer now says nothing about the type.
  const served = await findServedTypes(db, lease.tenantId).catch(() => undefined);
  if (!served || served.has(lease.type)) {
    const delaySeconds = Math.min(60, 2 ** Math.min(lease.interruptions, 6));
    return { kind: "released", cause: "NO_HANDLER_HERE", delaySeconds };
  }
  const message = `No live worker has a handler for job type ${JSON.stringify(lease.type)}.`;
  return { kind: "terminal", error: { code: "UNSUPPORTED_JOB_TYPE", message, retryable: false } };
}
