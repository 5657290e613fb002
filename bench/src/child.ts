/** Entry of every contestant process: `child.ts {contestant, role, params, place}`. */
import { findContestant } from "./contestants/index.ts";
import type { Envelope } from "./inbox.ts";
import { playRole, type RoleName, type RoleParams } from "./roles/index.ts";
import type { Place } from "./types.ts";

interface Start {
  contestant: string;
  role: RoleName;
  params: RoleParams[RoleName];
  place: Place;
}

const listeners = new Map<string, (data: unknown) => void>();
const early = new Map<string, unknown>();
process.on("message", (message) => {
  const { type, data } = message as Envelope;
  const listener = listeners.get(type);
  if (listener) listener(data);
  else early.set(type, data);
});
// A driver that is gone will not stop us: end with it.
process.on("disconnect", () => process.exit(1));

const io = {
  send: (type: string, data?: unknown) => void process.send?.({ type, data }),
  receive: (type: string) =>
    new Promise<unknown>((resolve) => {
      if (early.has(type)) resolve(early.get(type));
      else listeners.set(type, resolve);
    }),
};

const start = JSON.parse(process.argv[2] ?? "{}") as Start;
try {
  await playRole(start.role, await findContestant(start.contestant), start.place, start.params, io);
} catch (error) {
  io.send("error", error instanceof Error ? (error.stack ?? error.message) : String(error));
}
