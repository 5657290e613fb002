import type { Evolved, EvolveEvent } from "../evolution/evolve-events.js";
import type { Candidate, Objective } from "../evolution/population.js";

/** One document per line, with the names that jobs and cards have. */
export function evolveEventJson(event: EvolveEvent): Record<string, unknown> {
  if (event.event === "opened") {
    const { experiment, repositoryId, base } = event;
    return {
      event: "opened",
      experiment_id: experiment,
      repository_id: repositoryId,
      base_commit_hash: base,
    };
  }
  if (event.event === "started") {
    const { start, objective, unit } = event;
    return { event: "started", ...objectiveJson(objective, unit), start: candidateJson(start) };
  }
  if (event.event === "generation") {
    return { event: "generation", generation: event.generation, best: candidateJson(event.best) };
  }
  const { generation, slot, island, jobId, state, commit, subject, value, error } = event.member;
  const place = { generation, candidate: slot, island_id: island, job_id: jobId, state };
  if (state === "SUCCEEDED") return { event: "job", ...place, commit_hash: commit, value, subject };
  return { event: "job", ...place, ...(error && { error: { code: error.code, message: error.message } }) };
}

export function evolvedJson(evolved: Evolved): Record<string, unknown> {
  const { experiment, repositoryId, objective, unit, start, best, ...counts } = evolved;
  return {
    event: "ended",
    experiment_id: experiment,
    repository_id: repositoryId,
    ...objectiveJson(objective, unit),
    start: candidateJson(start),
    best: candidateJson(best),
    ...counts,
  };
}

function objectiveJson({ metric, higherIsBetter }: Objective, unit: string | null): Record<string, unknown> {
  return { metric, unit, higher_is_better: higherIsBetter };
}

function candidateJson({ commit, island, value }: Candidate): Record<string, unknown> {
  return { commit_hash: commit, island_id: island, value };
}
