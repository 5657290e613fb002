import type { Slice } from "../store/claim.js";

/** A slice and what it has had: `served` counts jobs per point of weight. */
export interface Share {
  slice: Slice;
  served: number;
  /** The last claim found less than it asked for: nothing is to be had before something becomes ready. */
  spent: boolean;
}

export interface Quota {
  share: Share;
  jobs: number;
}

/**
 * Divides `want` jobs so that afterwards everybody is served as evenly as whole jobs allow: those who have had least
 * for their weight come first, ties go in the order given. Works for claims of one job as for claims of thousands.
 */
export function divide(shares: readonly Share[], want: number): Quota[] {
  const reached = [...shares].sort((a, b) => a.served - b.served);
  // Poured in from the least served on, the jobs do not reach those who are ahead of the level.
  while (reached.length > 1 && levelOf(reached, want) <= (reached.at(-1)?.served ?? 0)) reached.pop();
  const level = levelOf(reached, want);
  const quotas = reached.map((share) => ({
    share,
    jobs: Math.floor((level - share.served) * share.slice.weight),
  }));
  const left = want - quotas.reduce((sum, { jobs }) => sum + jobs, 0);
  quotas.sort((a, b) => servedAfter(a) - servedAfter(b));
  for (const quota of quotas.slice(0, left)) quota.jobs++;
  return quotas.filter(({ jobs }) => jobs > 0);
}

/** How far everybody is served when these have shared the jobs. */
function levelOf(shares: readonly Share[], want: number): number {
  let weights = 0;
  let jobs = want;
  for (const { slice, served } of shares) {
    weights += slice.weight;
    jobs += served * slice.weight;
  }
  return jobs / weights;
}

function servedAfter({ share, jobs }: Quota): number {
  return share.served + jobs / share.slice.weight;
}
