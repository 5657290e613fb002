import { createHash } from "node:crypto";
import type { ArtifactStore } from "./artifacts/store.js";
import { OracleError } from "./core/errors.js";
import { contentHash, specHash } from "./core/hash.js";
import type { Job, Result } from "./core/job.js";
import type { JsonValue } from "./core/json.js";
import { provenanceHash } from "./core/provenance.js";
import { openArtifact } from "./open-artifact.js";
import { listArtifacts } from "./store/artifact.js";
import type { Database } from "./store/database.js";
import { getEffects } from "./store/list-effects.js";
import { getAttempts, getResult, requireJob } from "./store/read.js";
import { getSteps } from "./store/steps.js";

type OpenStore = () => Promise<ArtifactStore>;

/** Where a job's records are read, and where its artifacts' bytes are. */
export interface VerifySource {
  db: Database;
  artifactStore: OpenStore;
}

/** One stored hash beside the one computed anew. */
export interface Check {
  /** `spec_hash`, `content_hash`, `step "name"`, `request of effect "name"`, `provenance_hash` … */
  name: string;
  stored: string;
  computed: string;
  matches: boolean;
}

/** Computes every hash of a job anew from what is stored: input, result, steps, effects, artifacts, provenance. */
export async function verifyJob(
  source: VerifySource,
  jobId: string,
): Promise<{ job: Job & { input: JsonValue }; checks: Check[] }> {
  const { db } = source;
  // Not taken out of its object: an installation's method needs its `this`.
  const artifactStore = () => source.artifactStore();
  const job = await requireJob(db, jobId);
  const { type: jobType, input, handlerVersion } = job;
  const checks = [
    check("spec_hash", job.specHash, specHash({ jobType, input, handlerVersion })),
    ...(await checkSteps(db, artifactStore, jobId)),
    ...(await checkEffects(db, jobId)),
    ...(await checkArtifacts(db, artifactStore, jobId)),
  ];
  const result = await getResult(db, jobId);
  if (!result) return { job, checks };
  checks.push(
    check("content_hash", result.contentHash, contentHash(result.payload)),
    check("provenance_hash", result.provenanceHash, await computeProvenance(db, job, result)),
  );
  return { job, checks };
}

async function checkSteps(db: Database, artifactStore: OpenStore, jobId: string): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { name, value, valueHash, artifactId } of await getSteps(db, jobId)) {
    const computed =
      artifactId === null ? contentHash(value as JsonValue) : await digest(db, artifactStore, artifactId);
    checks.push(check(`step ${JSON.stringify(name)}`, valueHash, computed));
  }
  return checks;
}

async function checkEffects(db: Database, jobId: string): Promise<Check[]> {
  return (await getEffects(db, jobId)).flatMap(({ name, request, requestHash, response, responseHash }) => {
    const shown = JSON.stringify(name);
    const sent = check(`request of effect ${shown}`, requestHash, contentHash(request));
    if (responseHash === null) return [sent];
    return [sent, check(`response of effect ${shown}`, responseHash, contentHash(response))];
  });
}

async function checkArtifacts(db: Database, artifactStore: OpenStore, jobId: string): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { artifactId, name, sha256 } of await listArtifacts(db, jobId)) {
    checks.push(
      check(`artifact ${JSON.stringify(name)}`, sha256, await digest(db, artifactStore, artifactId)),
    );
  }
  return checks;
}

/** What the bytes of an artifact hash to now, or why nobody can tell. */
async function digest(db: Database, artifactStore: OpenStore, artifactId: string): Promise<string> {
  try {
    const artifact = await openArtifact(db, artifactStore, artifactId);
    if (!artifact) return "missing";
    const hash = createHash("sha256");
    for await (const chunk of artifact.content) hash.update(chunk as Buffer);
    return hash.digest("hex");
  } catch (error) {
    return `unreadable: ${(error as Error).message}`;
  }
}

async function computeProvenance(db: Database, { jobId, specHash }: Job, result: Result): Promise<string> {
  const attempt = (await getAttempts(db, jobId)).find(({ attemptId }) => attemptId === result.attemptId);
  if (!attempt) {
    throw new OracleError("VERIFY_FAILED", `Job ${jobId}: the attempt of its result is missing.`, { jobId });
  }
  const artifacts = (await listArtifacts(db, jobId)).filter(
    ({ attemptNo }) => attemptNo === attempt.attemptNo,
  );
  return provenanceHash({
    specHash,
    handlerVersion: attempt.handlerVersion,
    attemptId: attempt.attemptId,
    attemptNo: attempt.attemptNo,
    modelMetadata: result.modelMetadata,
    contentHash: result.contentHash,
    steps: await getSteps(db, jobId),
    effects: await getEffects(db, jobId),
    artifacts: artifacts.map(({ sha256 }) => sha256),
  });
}

function check(name: string, stored: string, computed: string): Check {
  return { name, stored, computed, matches: stored === computed };
}
