import { hash } from "node:crypto";

/** What is to be improved, and which way is up. */
export interface Objective {
  metric: string;
  higherIsBetter: boolean;
}

/** A commit whose metric was measured. The start belongs to every island. */
export interface Candidate {
  commit: string;
  island: string | null;
  value: number;
}

/** One job to be: what it starts from, and what it may look at. */
export interface Slot {
  /** Counted from 1 within its generation. */
  number: number;
  island: string;
  parent: Candidate;
  inspirations: string[];
}

export interface Generation {
  /** Makes the draws: the same seed and candidates give the same slots. */
  seed: string;
  population: number;
  islands: number;
  start: Candidate;
  /** What earlier generations have brought, oldest first. */
  candidates: readonly Candidate[];
  objective: Objective;
}

/** The most that can be asked for. */
export const mostOf = { generations: 10_000, population: 100, islands: 20, maxJobs: 1_000_000, name: 100 };

/** More would only make a prompt longer. */
const MOST_INSPIRATIONS = 3;

export function isBetter(a: number, b: number, { higherIsBetter }: Objective): boolean {
  return higherIsBetter ? a > b : a < b;
}

export function isReached(value: number, target: number, objective: Objective): boolean {
  return value === target || isBetter(value, target, objective);
}

/** Best first; of two that are as good, the one that came first. */
export function ranked(candidates: readonly Candidate[], objective: Objective): Candidate[] {
  return candidates.toSorted((a, b) => {
    if (a.value === b.value) return 0;
    return isBetter(a.value, b.value, objective) ? -1 : 1;
  });
}

export function islandName(number: number): string {
  return `island-${number}`;
}

/**
 * The jobs of one generation, dealt to the islands in turn. An island's first job goes on from its best commit, the others
 * from the winner of a draw among its better ones, so that a second-best way is not given up at once.
 */
export function planGeneration(generation: Generation): Slot[] {
  const { seed, population, islands, start, candidates, objective } = generation;
  const seats = Math.ceil(population / islands);
  return Array.from({ length: population }, (_, at) => {
    const island = islandName((at % islands) + 1);
    const own = ranked([start, ...candidates.filter((one) => one.island === island)], objective);
    const survivors = own.slice(0, Math.max(2, seats));
    const parent = at < islands ? (survivors[0] ?? start) : draw(survivors, `${seed}/${at + 1}`);
    return { number: at + 1, island, parent, inspirations: inspire(generation, island, parent) };
  });
}

/** Two are drawn and the better one, which comes first, wins. */
function draw(survivors: readonly Candidate[], seed: string): Candidate {
  const digest = Buffer.from(hash("sha256", seed), "hex");
  const [one, other] = [digest.readUInt32BE(0), digest.readUInt32BE(4)].map((n) => n % survivors.length);
  return survivors[Math.min(one as number, other as number)] as Candidate;
}

/** The best commit of each other island; where there is no other, the next best of this one. */
function inspire(
  { islands, candidates, objective }: Generation,
  island: string,
  parent: Candidate,
): string[] {
  const others = ranked(candidates, objective).filter(({ commit }) => commit !== parent.commit);
  const seen = new Set<string | null>();
  const chosen = others.filter((one) => {
    if (islands === 1) return true;
    if (one.island === island || seen.has(one.island)) return false;
    seen.add(one.island);
    return true;
  });
  return chosen.slice(0, MOST_INSPIRATIONS).map(({ commit }) => commit);
}
