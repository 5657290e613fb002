import { JobPreconditionError, OracleError } from "../core/errors.js";
import type { Database } from "./database.js";
import { getEffects } from "./list-effects.js";
import { getSteps } from "./steps.js";

/** Refuses a replay from a step that the job does not have, or that has something unsettled before it. */
export async function checkFork(db: Database, jobId: string, from: string): Promise<void> {
  const steps = await getSteps(db, jobId);
  const step = steps.find(({ name }) => name === from);
  if (!step) {
    const known = steps.map(({ name }) => JSON.stringify(name)).join(", ") || "none";
    const message = `Job ${jobId} has no step ${JSON.stringify(from)}. Its steps: ${known}.`;
    throw new OracleError("INVALID_ARGUMENT", message, { field: "from", jobId });
  }
  const open = (await getEffects(db, jobId)).find(
    ({ seq, state }) => seq < step.seq && state !== "CONFIRMED" && state !== "FAILED",
  );
  if (!open) return;
  const why = `has effect ${open.effectId} (${open.name}) as ${open.state} before that step; settle it first`;
  throw new JobPreconditionError(jobId, why);
}
