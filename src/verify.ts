import { OracleError } from "./core/errors.js";
import { contentHash, specHash } from "./core/hash.js";
import type { Job } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import { provenanceHash } from "./core/provenance.js";
import type { Database } from "./store/database.js";
import { getEffects } from "./store/list-effects.js";
import { getArtifactHashes, getAttempts, getResult, requireJob } from "./store/read.js";
import { getSteps } from "./store/steps.js";

/** One stored hash beside the one computed anew. */
export interface Check {
  /** `spec_hash`, `content_hash`, `step "name"`, `request of effect "name"`, `provenance_hash` … */
  name: string;
  stored: string;
  computed: string;
  matches: boolean;
}

/** Computes every hash of a job anew from what is stored: input, result, steps, effects, and how they belong together. */
export async function verifyJob(
  db: Database,
  jobId: string,
): Promise<{ job: Job & { input: JsonValue }; checks: Check[] }> {
  const job = await requireJob(db, jobId);
  const [result, steps, effects] = await Promise.all([
    getResult(db, jobId),
    getSteps(db, jobId),
    getEffects(db, jobId),
  ]);
  const { type: jobType, input, handlerVersion } = job;
  const checks = [check("spec_hash", job.specHash, specHash({ jobType, input, handlerVersion }))];
  for (const { name, value, valueHash } of steps) {
    if (value !== undefined)
      checks.push(check(`step ${JSON.stringify(name)}`, valueHash, contentHash(value)));
  }
  for (const { name, request, requestHash, response, responseHash } of effects) {
    const shown = JSON.stringify(name);
    checks.push(check(`request of effect ${shown}`, requestHash, contentHash(request)));
    if (responseHash !== null)
      checks.push(check(`response of effect ${shown}`, responseHash, contentHash(response)));
  }
  if (!result) return { job, checks };
  checks.push(check("content_hash", result.contentHash, contentHash(result.payload)));
  const attempt = (await getAttempts(db, jobId)).find(({ attemptId }) => attemptId === result.attemptId);
  if (!attempt) {
    throw new OracleError("VERIFY_FAILED", `Job ${jobId}: the attempt of its result is missing.`, { jobId });
  }
  const computed = provenanceHash({
    specHash: job.specHash,
    handlerVersion: attempt.handlerVersion,
    attemptId: attempt.attemptId,
    attemptNo: attempt.attemptNo,
    modelMetadata: result.modelMetadata,
    contentHash: result.contentHash,
    steps,
    effects,
    artifacts: await getArtifactHashes(db, jobId, result.attemptId),
  });
  checks.push(check("provenance_hash", result.provenanceHash, computed));
  return { job, checks };
}

export function check(name: string, stored: string, computed: string): Check {
  return { name, stored, computed, matches: stored === computed };
}
