import { sleep } from "../servers/system.ts";
import type { Contestant, Place } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";
import { openQueue } from "./queue.ts";

const GIVE_UP_MS = 10_000;
/** Probe jobs count downwards from here, so that they are told from the load beside them. */
const PROBE = -1;

/** One job at a time: from just before the enqueue call to the first line of its handler, in one process. */
export async function pickupRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["pickup"],
  io: Io,
): Promise<void> {
  const session = await openQueue(contestant, place);
  if (params.install) await session.install();
  const waiting = new Map<number, (at: number) => void>();
  const handler = (input: { n: number }) => {
    const seen = performance.now();
    waiting.get(input.n)?.(seen);
    waiting.delete(input.n);
    return { ok: true as const, n: input.n };
  };
  const worker = await session.startWorker(handler, { mode: "latency" });

  // On a busy machine fewer samples are taken; the driver sees how many.
  const latencies: number[] = [];
  const warmUp = 20;
  const end = performance.now() + params.maxSeconds * 1000;
  for (let sample = 0; sample < warmUp + params.samples && performance.now() < end; sample++) {
    // Not in step with anyone's polling interval, or a lucky phase would pass for speed.
    await sleep(params.gapMs * (0.5 + Math.random()));
    const n = PROBE - sample;
    const seen = new Promise<number>((resolve) => waiting.set(n, resolve));
    const began = performance.now();
    await session.enqueue({ n });
    const latency = (await withinLimit(seen, sample)) - began;
    if (sample >= warmUp) latencies.push(latency);
  }
  await worker.stop();
  await session.close();
  io.send("latencies", latencies);
}

async function withinLimit(seen: Promise<number>, sample: number): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`probe ${sample} was not picked up in ${GIVE_UP_MS} ms`)),
      GIVE_UP_MS,
    );
  });
  const at = await Promise.race([seen, late]);
  clearTimeout(timer);
  return at;
}
