import { type BareLoop, openBareLoop } from "../contestants/oracle-bare-loop.ts";
import type { Contestant, Place } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";

/** Our own SQL without our worker. */
export async function bareLoopRole(
  _contestant: Contestant,
  place: Place,
  params: RoleParams["bare-loop"],
  io: Io,
): Promise<void> {
  const loop: BareLoop = await openBareLoop(place);
  io.send("ready", null);
  await io.receive("go");
  const began = performance.now();
  await loop.drain(params.jobs);
  io.send("ran", { seconds: (performance.now() - began) / 1000 });
  await loop.close();
}
