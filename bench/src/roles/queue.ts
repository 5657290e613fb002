import type { Contestant, JobInput, Place, QueueSession } from "../types.ts";

export async function openQueue(contestant: Contestant, place: Place): Promise<QueueSession> {
  if (!contestant.openQueue) throw new Error(`${contestant.name} is no queue`);
  return contestant.openQueue(place);
}

/** Text that does not compress to nothing: otherwise TOAST would hide what 4 KB cost. */
export function blobOf(bytes: number, seed: number): string {
  let text = "";
  let state = seed * 2_654_435_761 + 1;
  while (text.length < bytes) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += state.toString(36);
  }
  return text.slice(0, bytes);
}

export function inputs(from: number, count: number, blobBytes = 0): JobInput[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    return blobBytes > 0 ? { n, blob: blobOf(blobBytes, n) } : { n };
  });
}
