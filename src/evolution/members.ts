import { JobPreconditionError } from "../core/errors.js";
import { type CommitCard, EVOLVE_COMMIT } from "../core/evolution.js";
import type { Job } from "../core/job.js";
import type { Oracle } from "../oracle.js";
import { retry } from "../store/control.js";
import { listCards } from "../store/evolution-cards.js";
import { markIngested, markIngestionFailed } from "../store/evolution-ingest.js";
import { getJobs, requireJob } from "../store/read.js";
import type { Member } from "./evolve-events.js";
import { type Experiment, TENANT } from "./experiment.js";
import type { Candidate } from "./population.js";
import type { EvolutionSpec } from "./spec.js";

export function newMember(place: Pick<Member, "generation" | "slot" | "island" | "jobId">): Member {
  return { ...place, state: null, commit: null, subject: null, value: null, error: null };
}

/** The jobs that earlier runs of the experiment have submitted, by generation. */
export async function findMembers(oracle: Oracle, experiment: Experiment): Promise<Map<number, Member[]>> {
  const found = new Map<number, Member[]>();
  let after: string | undefined;
  do {
    const page = await oracle.list({ type: EVOLVE_COMMIT, queue: experiment.queue, limit: 1000, after });
    for (const { jobId, idempotencyKey } of page.items) {
      const place = experiment.placeOf(idempotencyKey);
      if (!place) continue;
      const { input } = await requireJob(oracle.db, jobId);
      const member = newMember({ ...place, jobId, island: (input as EvolutionSpec).island_id ?? "" });
      found.set(place.generation, [...(found.get(place.generation) ?? []), member]);
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
  for (const members of found.values()) members.sort((a, b) => a.slot - b.slot);
  return found;
}

/** Puts back what failed only because a program was not there: by now it is, or it would have been refused. */
export async function retryUnstarted({ db }: Oracle, members: Member[]): Promise<void> {
  const jobs = await getJobs(
    db,
    members.map(({ jobId }) => jobId),
  );
  for (const { jobId, state, error } of jobs) {
    if (state !== "FAILED_TERMINAL" || error?.code !== "HANDLERS_INVALID") continue;
    // Another run of the same experiment may have been faster.
    await retry(db, jobId).catch((refusal) => {
      if (!(refusal instanceof JobPreconditionError)) throw refusal;
    });
  }
}

/** The commits whose metric was measured, oldest first. */
export async function findCandidates(
  oracle: Oracle,
  experiment: Experiment,
  metric: string,
): Promise<Candidate[]> {
  return (await cardsOf(oracle, experiment)).flatMap((card) => {
    const value = measuredOn(card, metric);
    return value === null ? [] : [{ commit: card.commit_hash, island: card.island_id, value }];
  });
}

function cardsOf({ db }: Oracle, { repositoryId, name }: Experiment): Promise<CommitCard[]> {
  return listCards(db, { tenantId: TENANT, repositoryId, experimentId: name });
}

function measuredOn({ metrics }: CommitCard, metric: string): number | null {
  return metrics.find(({ name }) => name === metric)?.value ?? null;
}

/** Brings members up to what has become of their jobs; returns those that changed. */
export async function refresh(
  oracle: Oracle,
  experiment: Experiment,
  metric: string,
  members: Member[],
  jobs: Job[],
): Promise<Member[]> {
  const byId = new Map(jobs.map((job) => [job.jobId, job]));
  const changed = members.filter(({ jobId, state }) => state !== (byId.get(jobId)?.state ?? state));
  await ingest(
    oracle,
    experiment,
    metric,
    changed.filter(({ jobId }) => byId.get(jobId)?.state === "SUCCEEDED"),
  );
  // After what may fail: what was not ingested is seen as changed again.
  for (const member of changed) {
    const { state, error } = byId.get(member.jobId) as Job;
    member.state = state;
    member.error = state === "SUCCEEDED" ? null : error;
  }
  return changed;
}

/** Takes notice of the cards, and has that on record; one without the metric is no candidate. */
async function ingest(
  oracle: Oracle,
  experiment: Experiment,
  metric: string,
  members: Member[],
): Promise<void> {
  if (members.length === 0) return;
  const cards = await cardsOf(oracle, experiment);
  for (const member of members) {
    const card = cards.find(({ job_id }) => job_id === member.jobId);
    if (!card) continue;
    member.commit = card.commit_hash;
    member.subject = card.subject;
    member.value = measuredOn(card, metric);
    if (member.value !== null) await markIngested(oracle.db, [member.jobId]);
    else await markIngestionFailed(oracle.db, member.jobId, `The evaluator did not measure ${metric}.`);
  }
}
