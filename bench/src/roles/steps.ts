import type { Contestant, Place } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";

/** Durable jobs of several steps each. A tenth runs first, unmeasured, for connections and the JIT. */
export async function stepsRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["steps"],
  io: Io,
): Promise<void> {
  if (!contestant.openSteps) throw new Error(`${contestant.name} has no durable steps`);
  const session = await contestant.openSteps(place);
  await session.install();
  const warmUp = Math.ceil(params.jobs / 10);
  await session.run(warmUp, params.steps, params.atATime);
  const began = performance.now();
  await session.run(params.jobs, params.steps, params.atATime);
  const seconds = (performance.now() - began) / 1000;
  const kept = await session.durableSteps();
  const expected = (warmUp + params.jobs) * params.steps;
  if (kept !== expected) throw new Error(`${kept} step results in the store, not ${expected}`);
  io.send("ran", { seconds });
  await session.close();
}
