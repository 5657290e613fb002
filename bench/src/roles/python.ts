import type { Contestant, Place } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";

export async function pythonRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["python"],
  io: Io,
): Promise<void> {
  if (!contestant.openPython) throw new Error(`${contestant.name} runs no Python`);
  const session = await contestant.openPython(place);
  await session.install();
  const seconds = await session.run(params.jobs);
  io.send("ran", { seconds });
  await session.close();
}
