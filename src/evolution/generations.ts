import { EVOLVE_COMMIT } from "../core/evolution.js";
import type { Oracle } from "../oracle.js";
import type { Evolved, Member } from "./evolve-events.js";
import type { EvolveOptions } from "./evolve-options.js";
import type { Experiment } from "./experiment.js";
import { follow, type Halt } from "./follow.js";
import { findCandidates, findMembers, newMember, refresh, retryUnstarted } from "./members.js";
import { type Candidate, isReached, planGeneration, ranked, type Slot } from "./population.js";
import type { EvolutionSpec } from "./spec.js";
import type { Start } from "./start.js";

/** The generations of one experiment, from the first to the last: those that are there are taken as they are. */
export class Generations {
  private readonly members: Member[] = [];
  /** What earlier runs have found, also in generations that this one has not come to yet. */
  private earlier: Candidate[] = [];
  private done = 0;

  constructor(
    private readonly oracle: Oracle,
    private readonly experiment: Experiment,
    private readonly options: EvolveOptions,
    private readonly start: Start,
    private readonly halt: Halt,
  ) {}

  async run(): Promise<Evolved> {
    const { generations, target, signal } = this.options;
    const existing = await findMembers(this.oracle, this.experiment);
    this.earlier = await findCandidates(this.oracle, this.experiment, this.start.objective.metric);
    for (let generation = 1; ; generation++) {
      const { value } = this.bestOf(this.candidates());
      if (target !== undefined && isReached(value, target, this.start.objective)) return this.end("target");
      if (generation > generations) return this.end(this.isCut() ? "budget" : "generations");
      if (signal?.aborted) return this.end("interrupted");
      const found = existing.get(generation);
      if (found) await retryUnstarted(this.oracle, found);
      const members = found ?? (await this.submit(generation));
      if (members.length === 0) return this.end("budget");
      if (!(await this.live(generation, members))) return this.end("interrupted");
    }
  }

  /** One statement: a generation is there as a whole or not at all. */
  private async submit(generation: number): Promise<Member[]> {
    const { population, islands, maxJobs = Number.POSITIVE_INFINITY } = this.options;
    const { queue, startKey, jobKey } = this.experiment;
    const seed = `${startKey}/${generation}`;
    const { start } = this;
    const candidates = this.candidates();
    const slots = planGeneration({
      seed,
      population,
      islands,
      start,
      candidates,
      objective: start.objective,
    });
    const affordable = slots.slice(0, Math.max(0, maxJobs - this.members.length));
    const handles = await this.oracle.enqueueMany(
      EVOLVE_COMMIT,
      affordable.map((slot) => this.specOf(generation, slot)),
      { queue, keys: affordable.map(({ number }) => jobKey(generation, number)) },
    );
    return handles.map(({ id }, at) => {
      const { number, island } = affordable[at] as Slot;
      return newMember({ generation, slot: number, island, jobId: id });
    });
  }

  private specOf(generation: number, { number, island, parent, inspirations }: Slot): Partial<EvolutionSpec> {
    const { repositoryId, repository, name } = this.experiment;
    const { objective, unit } = this.start;
    const better = objective.higherIsBetter ? "higher" : "lower";
    const aim = `${objective.metric} ${better} than ${parent.value} ${unit ?? ""}`;
    return {
      repository_id: repositoryId,
      repository: repository.git.folder,
      base_commit_hash: parent.commit,
      island_id: island,
      experiment_id: name,
      inspiration_commit_hashes: inspirations,
      goal: this.options.goal,
      acceptance_criteria: [aim.trim().slice(0, 200)],
      iteration_hint: `generation ${generation}, candidate ${number} of ${this.options.population}`,
    };
  }

  /** Follows a generation to its end, and lets the branch follow the best; false when it was stopped before. */
  private async live(generation: number, members: Member[]): Promise<boolean> {
    const { oracle, experiment, options, start } = this;
    this.members.push(...members);
    const ids = members.map(({ jobId }) => jobId);
    const ended = await follow(oracle.db, ids, this.halt, async (jobs) => {
      for (const member of await refresh(oracle, experiment, start.objective.metric, members, jobs)) {
        options.onEvent?.({ event: "job", member: { ...member } });
      }
    });
    const { commit } = this.best();
    // Without its repository every job to come would fail, one after the other.
    await experiment.repository.git.read(["cat-file", "-e", commit]);
    if (commit !== start.commit) await experiment.branch.move(commit);
    if (!ended) return false;
    this.done = generation;
    options.onEvent?.({ event: "generation", generation, best: this.bestOf(this.candidates()) });
    return true;
  }

  /** Whether the last generation would have been larger, had there been more to spend. */
  private isCut(): boolean {
    const { population, maxJobs = Number.POSITIVE_INFINITY } = this.options;
    const last = this.members.filter(({ generation }) => generation === this.done);
    return this.members.length >= maxJobs && last.length < population;
  }

  private candidates(): Candidate[] {
    return this.members.flatMap(({ commit, island, value }) =>
      commit === null || value === null ? [] : [{ commit, island, value }],
    );
  }

  /** Of all there is, so that the branch never goes back. */
  private best(): Candidate {
    return this.bestOf([...this.candidates(), ...this.earlier]);
  }

  private bestOf(candidates: Candidate[]): Candidate {
    const { commit, island, value, objective } = this.start;
    return ranked([{ commit, island, value }, ...candidates], objective)[0] as Candidate;
  }

  private end(stopped: Evolved["stopped"]): Evolved {
    const { start, members } = this;
    const count = (states: string[]) =>
      members.filter(({ state }) => state !== null && states.includes(state)).length;
    return {
      experiment: this.experiment.name,
      repositoryId: this.experiment.repositoryId,
      objective: start.objective,
      unit: start.unit,
      start: { commit: start.commit, island: null, value: start.value },
      best: this.best(),
      branch: this.experiment.branch.name,
      generations: this.done,
      jobs: members.length,
      succeeded: count(["SUCCEEDED"]),
      failed: count(["FAILED_TERMINAL", "CANCELLED"]),
      stopped,
    };
  }
}
