import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Slice } from "../store/claim.js";
import { divide, type Share } from "./share.js";

const sliceOf = (tenantId: string, weight: number): Slice => ({
  queue: "q",
  tenantId,
  headRank: 0,
  headReadyAt: "",
  headJobId: "",
  ageing: false,
  weight,
});
const sharesOf = (...weights: number[]): Share[] =>
  weights.map((weight, at) => ({ slice: sliceOf(`t${at}`, weight), served: 0, spent: false }));

/** Takes claims of the sizes given and returns how many jobs each share had. */
function take(shares: Share[], sizes: number[]): number[] {
  const had = shares.map(() => 0);
  for (const size of sizes) {
    for (const { share, jobs } of divide(shares, size)) {
      share.served += jobs / share.slice.weight;
      had[shares.indexOf(share)] = (had[shares.indexOf(share)] ?? 0) + jobs;
    }
  }
  return had;
}

describe("dividing a claim", () => {
  it("gives 1:3 to weights 1 and 3, whatever the size of the claims", () => {
    expect(take(sharesOf(1, 3), Array(400).fill(1))).toEqual([100, 300]);
    expect(take(sharesOf(1, 3), Array(40).fill(10))).toEqual([100, 300]);
    expect(take(sharesOf(1, 3), [400])).toEqual([100, 300]);
  });

  it("lets the one who has had least catch up first", () => {
    const shares = sharesOf(1, 1);
    (shares[0] as Share).served = 5;
    expect(take(shares, [4])).toEqual([0, 4]);
    expect(take(shares, [5])).toEqual([2, 3]);
  });

  it("gives out exactly what is wanted, and nobody falls behind by more than a job", () => {
    const weights = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 70 });
    const sizes = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(weights, sizes, (given, claims) => {
        const had = take(sharesOf(...given), claims);
        const total = claims.reduce((sum, size) => sum + size, 0);
        const weight = given.reduce((sum, each) => sum + each, 0);
        expect(had.reduce((sum, jobs) => sum + jobs, 0)).toBe(total);
        for (const [at, jobs] of had.entries()) {
          const due = (total * (given[at] ?? 0)) / weight;
          // Rounding alone: at most one job, and one per point of weight that it is ahead of the others.
          expect(Math.abs(jobs - due)).toBeLessThanOrEqual(1 + (given[at] ?? 0));
        }
      }),
    );
  });
});
