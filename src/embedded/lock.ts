import { setTimeout as sleep } from "node:timers/promises";
import { locked } from "./failures.js";
import { enter, leave, type Presence, present } from "./presence.js";

const POLL_MS = 20;
const PATIENCE_MS = 90_000;

/**
 * One process at a time starts or stops the server. Lamport's bakery in a folder: each takes a ticket one higher
 * than all it sees, and the lowest living ticket has its turn. A lock file that others may declare stale has a
 * moment in which two take it over; here nobody touches another's mark unless its process is dead.
 */
export async function withLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const ticket = await takeTicket(folder);
  try {
    await waitForTurn(folder, ticket);
    return await work();
  } finally {
    await leave(folder, ticket);
  }
}

async function takeTicket(folder: string): Promise<Presence> {
  // While we choose, the others wait: our ticket may come out equal to one that is taken right now.
  const choosing = await enter(folder, "choosing");
  try {
    const numbers = (await present(folder)).map(ticketNumber);
    return await enter(folder, `ticket.${Math.max(0, ...numbers) + 1}`);
  } finally {
    await leave(folder, choosing);
  }
}

async function waitForTurn(folder: string, mine: Presence): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  const waitWhile = async (inTheWay: (other: Presence) => boolean) => {
    for (;;) {
      const other = (await present(folder)).find(inTheWay);
      if (other === undefined) return;
      if (Date.now() > deadline) {
        throw locked(
          `Process ${other.pid} has been starting or stopping the embedded Postgres for ` +
            `${PATIENCE_MS / 1000} seconds (its mark is in ${folder}): wait for it or end it, then try again.`,
        );
      }
      await sleep(POLL_MS);
    }
  };
  // Two listings, in this order: one alone could miss a process on its way from choosing to its ticket.
  await waitWhile((other) => other.label === "choosing");
  await waitWhile((other) => isBefore(other, mine));
}

function isBefore(other: Presence, mine: Presence): boolean {
  const difference = ticketNumber(other) - ticketNumber(mine);
  return other.label !== "choosing" && (difference < 0 || (difference === 0 && other.name < mine.name));
}

function ticketNumber(presence: Presence): number {
  return Number(presence.label.split(".")[1] ?? 0);
}
