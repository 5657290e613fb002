import { describe, expect, it } from "vitest";
import { type Candidate, type Generation, isReached, planGeneration, ranked } from "./population.js";

const faster = { metric: "ms", higherIsBetter: false };
const start: Candidate = { commit: "start", island: null, value: 100 };
const on = (island: number, commit: string, value: number): Candidate => ({
  commit,
  island: `island-${island}`,
  value,
});

/** With parents by their names. */
function plan(candidates: Candidate[], change: Partial<Generation> = {}) {
  const given = { seed: "a", population: 4, islands: 2, start, candidates, objective: faster };
  return planGeneration({ ...given, ...change }).map((slot) => ({ ...slot, parent: slot.parent.commit }));
}

describe("ranked", () => {
  it("puts the best first, whichever way is up, and the earlier of two as good", () => {
    const all = [on(1, "a", 5), on(1, "b", 3), on(1, "c", 5), on(1, "d", 9)];
    expect(ranked(all, faster).map(({ commit }) => commit)).toEqual(["b", "a", "c", "d"]);
    const higher = { metric: "score", higherIsBetter: true };
    expect(ranked(all, higher).map(({ commit }) => commit)).toEqual(["d", "a", "c", "b"]);
  });
});

describe("isReached", () => {
  it("is so at the target and beyond it", () => {
    expect([11, 10, 9].map((value) => isReached(value, 10, faster))).toEqual([false, true, true]);
    const higher = { metric: "score", higherIsBetter: true };
    expect([11, 10, 9].map((value) => isReached(value, 10, higher))).toEqual([true, true, false]);
  });
});

describe("planGeneration", () => {
  it("begins everywhere at the start, with the islands in turn", () => {
    expect(plan([])).toEqual(
      ["island-1", "island-2", "island-1", "island-2"].map((island, at) => ({
        number: at + 1,
        island,
        parent: "start",
        inspirations: [],
      })),
    );
  });

  it("goes on from an island's own best, inspired by the best of the others", () => {
    const slots = plan([on(1, "slow", 90), on(1, "quick", 10), on(2, "other", 50), on(2, "worse", 200)]);
    expect(slots[0]).toEqual({ number: 1, island: "island-1", parent: "quick", inspirations: ["other"] });
    expect(slots[1]).toEqual({ number: 2, island: "island-2", parent: "other", inspirations: ["quick"] });
    // The worst of an island is not among its survivors.
    expect(slots.map(({ parent }) => parent)).not.toContain("worse");
  });

  it("never leaves the start for something worse", () => {
    for (const { parent } of plan([on(1, "worse", 101), on(2, "bad", 900)], { population: 2 })) {
      expect(parent).toBe("start");
    }
  });

  it("draws the same again for the same seed, and reaches every survivor over many", () => {
    const candidates = [on(1, "a", 1), on(1, "b", 2), on(1, "c", 3), on(1, "d", 4)];
    const options = { population: 4, islands: 1 };
    expect(plan(candidates, options)).toEqual(plan(candidates, options));
    const parents = Array.from({ length: 50 }, (_, n) => plan(candidates, { ...options, seed: `seed ${n}` }))
      .flat()
      .map(({ parent }) => parent);
    expect([...new Set(parents)].sort()).toEqual(["a", "b", "c", "d"]);
    const count = (name: string) => parents.filter((parent) => parent === name).length;
    expect(count("a")).toBeGreaterThan(count("d"));
  });

  it("is inspired by its own next best where there is one island only, and by few of many", () => {
    const [first] = plan([on(1, "a", 1), on(1, "b", 2)], { islands: 1 });
    expect(first).toMatchObject({ parent: "a", inspirations: ["b"] });
    const many = Array.from({ length: 9 }, (_, n) => on(n + 1, `best-${n + 1}`, n + 1));
    const [slot] = plan(many, { islands: 9, population: 9 });
    expect(slot?.inspirations).toEqual(["best-2", "best-3", "best-4"]);
  });
});
