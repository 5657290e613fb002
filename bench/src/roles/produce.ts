import { sleep } from "../servers/system.ts";
import { wallClock } from "../stats.ts";
import type { Contestant, JobInput, Place } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";
import { openQueue } from "./queue.ts";

const TICK_MS = 20;

/** A steady producer: a small batch per tick, every job stamped with the time just before it is enqueued. */
export async function produceRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["produce"],
  io: Io,
): Promise<void> {
  const session = await openQueue(contestant, place);
  const began = performance.now();
  const end = began + params.seconds * 1000;
  const total = params.rate * params.seconds;
  let sent = 0;
  while (performance.now() < end && sent < total) {
    const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * params.rate)) - sent;
    if (due > 0) {
      const at = wallClock();
      const batch: JobInput[] = Array.from({ length: due }, (_, index) => ({ n: sent + index, at }));
      await session.enqueueMany(batch);
      sent += due;
    }
    await sleep(TICK_MS);
  }
  io.send("produced", { jobs: sent, seconds: (performance.now() - began) / 1000 });
  await session.close();
}
